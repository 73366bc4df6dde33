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
    id: 'dec_b23X4dc1Ahw6weiw4C42EuI7',
    object: 'decision',
    created: 1795380369,
    model: 'decision-1',
    mode: 'fast',
    answers: {
      refund: { type: 'noul', noul: 0.981417, threshold: 0.9, decision: true },
      team: {
        type: 'choice',
        choice: 'billing',
        probabilities: { billing: 0.83595, shipping: 0.088237, technical: 0.025194, sales: 0.050619 },
        confidence: 0.781267,
      },
      urgency: {
        type: 'score',
        score: 1.626763,
        probabilities: { '0': 0.076536, '1': 0.500359, '2': 0.142911, '3': 0.280194 },
        legend: { '0': 'can wait', '1': 'this week', '2': 'today', '3': 'right now' },
        confidence: 0.500359,
      },
    },
    usage: { input_tokens: 117, output_tokens: 0, decisions: 3, cost_usd: 0.000059 },
    latency_ms: 90.891,
  },
  'Assistant request': {
    id: 'dec_1veQe8qvdZI0oIpj40pN3omO',
    object: 'decision',
    created: 1795380369,
    model: 'decision-1',
    mode: 'fast',
    answers: {
      intent: {
        type: 'choice',
        choice: 'book_restaurant',
        probabilities: {
          book_restaurant: 0.977927,
          get_weather: 0.002393,
          play_music: 0.001858,
          set_alarm: 0.001361,
          find_route: 0.016461,
        },
        confidence: 0.972409,
      },
      restaurant: { type: 'noul', noul: 0.984361 },
      music: { type: 'noul', noul: 0.019769 },
    },
    usage: { input_tokens: 100, output_tokens: 0, decisions: 3, cost_usd: 0.00005 },
    latency_ms: 92.753,
  },
  'Product review': {
    id: 'dec_ueWVsZVWyOgnUcXWisfL4DHF',
    object: 'decision',
    created: 1795380369,
    model: 'decision-1',
    mode: 'fast',
    answers: {
      sentiment: {
        type: 'choice',
        choice: 'negative',
        probabilities: { positive: 0.099881, neutral: 0.23502, negative: 0.665099 },
        confidence: 0.497649,
      },
      about: {
        type: 'choice',
        choice: 'battery',
        probabilities: { screen: 0.011127, battery: 0.935989, sound: 0.0257, keyboard: 0.027184 },
        confidence: 0.914652,
      },
      stars: {
        type: 'score',
        score: 0.563034,
        probabilities: { '0': 0.472741, '1': 0.507477, '2': 0.007327, '3': 0.008917, '4': 0.003538 },
        legend: {
          '0': 'very dissatisfied',
          '1': 'dissatisfied',
          '2': 'mixed',
          '3': 'satisfied',
          '4': 'very satisfied',
        },
        confidence: 0.507477,
      },
    },
    usage: { input_tokens: 130, output_tokens: 0, decisions: 3, cost_usd: 0.000065 },
    latency_ms: 111.75,
  },
  'Suspicious text': {
    id: 'dec_aCuvTXonlsok25cwygjbFlEe',
    object: 'decision',
    created: 1795380369,
    model: 'decision-1',
    mode: 'fast',
    answers: {
      spam: { type: 'noul', noul: 0.931093, threshold: 0.85, decision: true },
      kind: {
        type: 'choice',
        choice: 'prize',
        probabilities: { prize: 0.836459, appointment: 0.030839, personal: 0.074514, delivery: 0.058188 },
        confidence: 0.781945,
      },
    },
    usage: { input_tokens: 111, output_tokens: 0, decisions: 2, cost_usd: 0.000056 },
    latency_ms: 129.914,
  },
  'News in JSON': {
    id: 'dec_Dr69VqdqIp31F1hPNeVM8gWg',
    object: 'decision',
    created: 1795380369,
    model: 'decision-1',
    mode: 'fast',
    answers: {
      topic: {
        type: 'choice',
        choice: 'sport',
        probabilities: {
          sport: 0.985674,
          business: 0.00594,
          politics: 0.003453,
          technology: 0.002159,
          entertainment: 0.002774,
        },
        confidence: 0.982092,
      },
      sport: { type: 'noul', noul: 0.989862 },
      politics: { type: 'noul', noul: 0.014541 },
    },
    usage: { input_tokens: 132, output_tokens: 0, decisions: 3, cost_usd: 0.000066 },
    latency_ms: 143.292,
  },
};
