import type { DecisionResponse } from '../../api/playground.ts';

/**
 * Returns the embedded model's answers to an example; undefined for any other name. Written by `bun run
 * recordings`.
 */
export function recordedAnswers(example_name = ''): DecisionResponse | undefined {
  return Object.hasOwn(RECORDED, example_name) ? RECORDED[example_name] : undefined;
}

const RECORDED: Readonly<Record<string, DecisionResponse>> = {
  'Support message': {
    id: 'dec_Me9yFWoLwvdW0PVOwCwn0W64',
    object: 'decision',
    created: 1795740447,
    model: 'decision-1',
    mode: 'fast',
    answers: {
      refund: { type: 'noul', noul: 0.989362, threshold: 0.9, decision: true },
      team: {
        type: 'choice',
        choice: 'billing',
        probabilities: { billing: 0.914187, shipping: 0.051857, technical: 0.010031, sales: 0.023925 },
        confidence: 0.885583,
      },
      urgency: {
        type: 'score',
        score: 1.433244,
        probabilities: { '0': 0.039247, '1': 0.707591, '2': 0.033833, '3': 0.219329 },
        legend: { '0': 'can wait', '1': 'this week', '2': 'today', '3': 'right now' },
        confidence: 0.707591,
      },
    },
    usage: { input_tokens: 117, output_tokens: 0, decisions: 3, cost_usd: 0.000059 },
    latency_ms: 80.528,
  },
  'Assistant request': {
    id: 'dec_myinyKeBQnv30BJxNG97w6Yz',
    object: 'decision',
    created: 1795740447,
    model: 'decision-1',
    mode: 'fast',
    answers: {
      intent: {
        type: 'choice',
        choice: 'book_restaurant',
        probabilities: {
          book_restaurant: 0.967363,
          get_weather: 0.002972,
          play_music: 0.002088,
          set_alarm: 0.001688,
          find_route: 0.025889,
        },
        confidence: 0.959204,
      },
      restaurant: { type: 'noul', noul: 0.990078 },
      music: { type: 'noul', noul: 0.012761 },
    },
    usage: { input_tokens: 100, output_tokens: 0, decisions: 3, cost_usd: 0.00005 },
    latency_ms: 50.119,
  },
  'Product review': {
    id: 'dec_DdsqqFAJf6urJpqORxHFuyxo',
    object: 'decision',
    created: 1795740448,
    model: 'decision-1',
    mode: 'fast',
    answers: {
      sentiment: {
        type: 'choice',
        choice: 'negative',
        probabilities: { positive: 0.115894, neutral: 0.223624, negative: 0.660482 },
        confidence: 0.490723,
      },
      about: {
        type: 'choice',
        choice: 'battery',
        probabilities: { screen: 0.005047, battery: 0.965705, sound: 0.013366, keyboard: 0.015882 },
        confidence: 0.954273,
      },
      stars: {
        type: 'score',
        score: 0.537537,
        probabilities: { '0': 0.488447, '1': 0.497224, '2': 0.004834, '3': 0.007335, '4': 0.00216 },
        legend: {
          '0': 'very dissatisfied',
          '1': 'dissatisfied',
          '2': 'mixed',
          '3': 'satisfied',
          '4': 'very satisfied',
        },
        confidence: 0.497224,
      },
    },
    usage: { input_tokens: 130, output_tokens: 0, decisions: 3, cost_usd: 0.000065 },
    latency_ms: 91.319,
  },
  'Suspicious text': {
    id: 'dec_EtguDfAeMCwSMJOCRNYsHQjU',
    object: 'decision',
    created: 1795740448,
    model: 'decision-1',
    mode: 'fast',
    answers: {
      spam: { type: 'noul', noul: 0.938357, threshold: 0.85, decision: true },
      kind: {
        type: 'choice',
        choice: 'prize',
        probabilities: { prize: 0.903458, appointment: 0.015687, personal: 0.052841, delivery: 0.028014 },
        confidence: 0.871277,
      },
    },
    usage: { input_tokens: 111, output_tokens: 0, decisions: 2, cost_usd: 0.000056 },
    latency_ms: 72.049,
  },
  'News in JSON': {
    id: 'dec_o7OnlHv4IvpZJJMH25rpnPmP',
    object: 'decision',
    created: 1795740448,
    model: 'decision-1',
    mode: 'fast',
    answers: {
      topic: {
        type: 'choice',
        choice: 'sport',
        probabilities: {
          sport: 0.984412,
          business: 0.006583,
          politics: 0.003935,
          technology: 0.002197,
          entertainment: 0.002873,
        },
        confidence: 0.980515,
      },
      sport: { type: 'noul', noul: 0.994094 },
      politics: { type: 'noul', noul: 0.008238 },
    },
    usage: { input_tokens: 132, output_tokens: 0, decisions: 3, cost_usd: 0.000066 },
    latency_ms: 69.228,
  },
};
