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
    id: 'dec_cEhEHsXHk1qMCl9eVYLxZGSl',
    object: 'decision',
    created: 1795767006,
    model: 'decision-1',
    mode: 'fast',
    answers: {
      refund: { type: 'noul', noul: 0.98117, threshold: 0.9, decision: true },
      team: {
        type: 'choice',
        choice: 'billing',
        probabilities: { billing: 0.96106, shipping: 0.024083, technical: 0.00435, sales: 0.010507 },
        confidence: 0.94808,
      },
      urgency: {
        type: 'score',
        score: 1.332429,
        probabilities: { '0': 0.015786, '1': 0.769179, '2': 0.081855, '3': 0.13318 },
        legend: { '0': 'can wait', '1': 'this week', '2': 'today', '3': 'right now' },
        confidence: 0.769179,
      },
    },
    usage: { input_tokens: 117, output_tokens: 0, decisions: 3, cost_usd: 0.000059 },
    latency_ms: 67.446,
  },
  'Assistant request': {
    id: 'dec_l1ZcpjsliNhuLgwurBL73ezu',
    object: 'decision',
    created: 1795767006,
    model: 'decision-1',
    mode: 'fast',
    answers: {
      intent: {
        type: 'choice',
        choice: 'book_restaurant',
        probabilities: {
          book_restaurant: 0.975809,
          get_weather: 0.000966,
          play_music: 0.000571,
          set_alarm: 0.000649,
          find_route: 0.022005,
        },
        confidence: 0.969761,
      },
      restaurant: { type: 'noul', noul: 0.984455 },
      music: { type: 'noul', noul: 0.013544 },
    },
    usage: { input_tokens: 100, output_tokens: 0, decisions: 3, cost_usd: 0.00005 },
    latency_ms: 58.586,
  },
  'Product review': {
    id: 'dec_7nkgKJ2eoo7cuuqssAjmDlTj',
    object: 'decision',
    created: 1795767006,
    model: 'decision-1',
    mode: 'fast',
    answers: {
      sentiment: {
        type: 'choice',
        choice: 'negative',
        probabilities: { positive: 0.238019, neutral: 0.214188, negative: 0.547793 },
        confidence: 0.321689,
      },
      about: {
        type: 'choice',
        choice: 'battery',
        probabilities: { screen: 0.002372, battery: 0.98379, sound: 0.00414, keyboard: 0.009698 },
        confidence: 0.978387,
      },
      stars: {
        type: 'score',
        score: 0.436962,
        probabilities: { '0': 0.674831, '1': 0.263094, '2': 0.025458, '3': 0.023516, '4': 0.013101 },
        legend: {
          '0': 'very dissatisfied',
          '1': 'dissatisfied',
          '2': 'mixed',
          '3': 'satisfied',
          '4': 'very satisfied',
        },
        confidence: 0.674831,
      },
    },
    usage: { input_tokens: 130, output_tokens: 0, decisions: 3, cost_usd: 0.000065 },
    latency_ms: 70.526,
  },
  'Suspicious text': {
    id: 'dec_vus3Q5f3wxgAGgYEAp2RE49g',
    object: 'decision',
    created: 1795767006,
    model: 'decision-1',
    mode: 'fast',
    answers: {
      spam: { type: 'noul', noul: 0.918745, threshold: 0.85, decision: true },
      kind: {
        type: 'choice',
        choice: 'prize',
        probabilities: { prize: 0.897446, appointment: 0.009961, personal: 0.072904, delivery: 0.019689 },
        confidence: 0.863261,
      },
    },
    usage: { input_tokens: 111, output_tokens: 0, decisions: 2, cost_usd: 0.000056 },
    latency_ms: 55.359,
  },
  'News in JSON': {
    id: 'dec_hSYMjE9XJzHUGEtKlle9M83b',
    object: 'decision',
    created: 1795767006,
    model: 'decision-1',
    mode: 'fast',
    answers: {
      topic: {
        type: 'choice',
        choice: 'sport',
        probabilities: {
          sport: 0.996311,
          business: 0.001513,
          politics: 0.000994,
          technology: 0.00049,
          entertainment: 0.000692,
        },
        confidence: 0.995389,
      },
      sport: { type: 'noul', noul: 0.991443 },
      politics: { type: 'noul', noul: 0.005881 },
    },
    usage: { input_tokens: 132, output_tokens: 0, decisions: 3, cost_usd: 0.000066 },
    latency_ms: 68.083,
  },
};
