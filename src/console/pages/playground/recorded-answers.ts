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
    id: 'dec_FLoFVWEs9GbJE30y6lqX49ST',
    object: 'decision',
    created: 1796109171,
    model: 'decision-1',
    mode: 'fast',
    answers: {
      refund: { type: 'noul', noul: 0.957599, threshold: 0.9, decision: true },
      team: {
        type: 'choice',
        choice: 'billing',
        probabilities: { billing: 0.977186, shipping: 0.010055, technical: 0.003624, sales: 0.009135 },
        confidence: 0.969581,
      },
      urgency: {
        type: 'score',
        score: 1.516764,
        probabilities: { '0': 0.019196, '1': 0.596428, '2': 0.232792, '3': 0.151584 },
        legend: { '0': 'can wait', '1': 'this week', '2': 'today', '3': 'right now' },
        confidence: 0.596428,
      },
    },
    usage: { input_tokens: 117, output_tokens: 0, decisions: 3, cost_usd: 0.000059 },
    latency_ms: 46.408,
  },
  'Assistant request': {
    id: 'dec_PSJHul1reZ3Isj19MxZJUiDz',
    object: 'decision',
    created: 1796109171,
    model: 'decision-1',
    mode: 'fast',
    answers: {
      intent: {
        type: 'choice',
        choice: 'book_restaurant',
        probabilities: {
          book_restaurant: 0.991481,
          get_weather: 0.001126,
          play_music: 0.000971,
          set_alarm: 0.002058,
          find_route: 0.004364,
        },
        confidence: 0.989351,
      },
      restaurant: { type: 'noul', noul: 0.975735 },
      music: { type: 'noul', noul: 0.025947 },
    },
    usage: { input_tokens: 100, output_tokens: 0, decisions: 3, cost_usd: 0.00005 },
    latency_ms: 39.365,
  },
  'Product review': {
    id: 'dec_ezXnppzOAliGlzvRB4yvMEsj',
    object: 'decision',
    created: 1796109171,
    model: 'decision-1',
    mode: 'fast',
    answers: {
      sentiment: {
        type: 'choice',
        choice: 'negative',
        probabilities: { positive: 0.053387, neutral: 0.155101, negative: 0.791512 },
        confidence: 0.687268,
      },
      about: {
        type: 'choice',
        choice: 'battery',
        probabilities: { screen: 0.002733, battery: 0.974978, sound: 0.008961, keyboard: 0.013328 },
        confidence: 0.966637,
      },
      stars: {
        type: 'score',
        score: 0.420429,
        probabilities: { '0': 0.634547, '1': 0.323541, '2': 0.032045, '3': 0.00667, '4': 0.003197 },
        legend: {
          '0': 'very dissatisfied',
          '1': 'dissatisfied',
          '2': 'mixed',
          '3': 'satisfied',
          '4': 'very satisfied',
        },
        confidence: 0.634547,
      },
    },
    usage: { input_tokens: 130, output_tokens: 0, decisions: 3, cost_usd: 0.000065 },
    latency_ms: 46.225,
  },
  'Suspicious text': {
    id: 'dec_YXnGZAQz9o6rDhAoNFqtou0X',
    object: 'decision',
    created: 1796109171,
    model: 'decision-1',
    mode: 'fast',
    answers: {
      spam: { type: 'noul', noul: 0.978108, threshold: 0.85, decision: true },
      kind: {
        type: 'choice',
        choice: 'prize',
        probabilities: { prize: 0.728477, appointment: 0.125509, personal: 0.125689, delivery: 0.020325 },
        confidence: 0.637969,
      },
    },
    usage: { input_tokens: 111, output_tokens: 0, decisions: 2, cost_usd: 0.000056 },
    latency_ms: 40.278,
  },
  'News in JSON': {
    id: 'dec_3QntlnfMPf6Iwkn2CLpjxwnR',
    object: 'decision',
    created: 1796109171,
    model: 'decision-1',
    mode: 'fast',
    answers: {
      topic: {
        type: 'choice',
        choice: 'sport',
        probabilities: {
          sport: 0.992591,
          business: 0.002278,
          politics: 0.00194,
          technology: 0.001322,
          entertainment: 0.001869,
        },
        confidence: 0.990739,
      },
      sport: { type: 'noul', noul: 0.983083 },
      politics: { type: 'noul', noul: 0.016959 },
    },
    usage: { input_tokens: 132, output_tokens: 0, decisions: 3, cost_usd: 0.000066 },
    latency_ms: 46.279,
  },
};
