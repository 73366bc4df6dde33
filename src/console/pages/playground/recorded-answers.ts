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
    id: 'dec_adNBa7p2wKUmrohS9u3m0teI',
    object: 'decision',
    created: 1796135216,
    model: 'decision-1',
    mode: 'fast',
    answers: {
      refund: { type: 'noul', noul: 0.976857, threshold: 0.9, decision: true },
      team: {
        type: 'choice',
        choice: 'billing',
        probabilities: { billing: 0.967636, shipping: 0.015838, technical: 0.006847, sales: 0.009679 },
        confidence: 0.956848,
      },
      urgency: {
        type: 'score',
        score: 1.606323,
        probabilities: { '0': 0.008529, '1': 0.580557, '2': 0.206976, '3': 0.203938 },
        legend: { '0': 'can wait', '1': 'this week', '2': 'today', '3': 'right now' },
        confidence: 0.580557,
      },
    },
    usage: { input_tokens: 117, output_tokens: 0, decisions: 3, cost_usd: 0.000059 },
    latency_ms: 37.256,
  },
  'Assistant request': {
    id: 'dec_l0E2aEi6WT5CIYfxgjI2OXqw',
    object: 'decision',
    created: 1796135216,
    model: 'decision-1',
    mode: 'fast',
    answers: {
      intent: {
        type: 'choice',
        choice: 'book_restaurant',
        probabilities: {
          book_restaurant: 0.988391,
          get_weather: 0.002127,
          play_music: 0.002017,
          set_alarm: 0.003205,
          find_route: 0.00426,
        },
        confidence: 0.985489,
      },
      restaurant: { type: 'noul', noul: 0.979299 },
      music: { type: 'noul', noul: 0.015204 },
    },
    usage: { input_tokens: 100, output_tokens: 0, decisions: 3, cost_usd: 0.00005 },
    latency_ms: 32.957,
  },
  'Product review': {
    id: 'dec_H8nVe0cSefMuiSWc5aAKLgL2',
    object: 'decision',
    created: 1796135216,
    model: 'decision-1',
    mode: 'fast',
    answers: {
      sentiment: {
        type: 'choice',
        choice: 'negative',
        probabilities: { positive: 0.031612, neutral: 0.065939, negative: 0.902449 },
        confidence: 0.853673,
      },
      about: {
        type: 'choice',
        choice: 'battery',
        probabilities: { screen: 0.004812, battery: 0.966614, sound: 0.012963, keyboard: 0.015611 },
        confidence: 0.955485,
      },
      stars: {
        type: 'score',
        score: 0.436754,
        probabilities: { '0': 0.568924, '1': 0.42714, '2': 0.002519, '3': 0.001092, '4': 0.000325 },
        legend: {
          '0': 'very dissatisfied',
          '1': 'dissatisfied',
          '2': 'mixed',
          '3': 'satisfied',
          '4': 'very satisfied',
        },
        confidence: 0.568924,
      },
    },
    usage: { input_tokens: 130, output_tokens: 0, decisions: 3, cost_usd: 0.000065 },
    latency_ms: 41.51,
  },
  'Suspicious text': {
    id: 'dec_vGTjYZ8Hrj6wcPVzXQTCL2PN',
    object: 'decision',
    created: 1796135216,
    model: 'decision-1',
    mode: 'fast',
    answers: {
      spam: { type: 'noul', noul: 0.983052, threshold: 0.85, decision: true },
      kind: {
        type: 'choice',
        choice: 'prize',
        probabilities: { prize: 0.792291, appointment: 0.059232, personal: 0.117718, delivery: 0.030759 },
        confidence: 0.723055,
      },
    },
    usage: { input_tokens: 111, output_tokens: 0, decisions: 2, cost_usd: 0.000056 },
    latency_ms: 34.358,
  },
  'News in JSON': {
    id: 'dec_JYAgk56KYwyQETf8isFDBk4l',
    object: 'decision',
    created: 1796135216,
    model: 'decision-1',
    mode: 'fast',
    answers: {
      topic: {
        type: 'choice',
        choice: 'sport',
        probabilities: {
          sport: 0.966936,
          business: 0.009195,
          politics: 0.008507,
          technology: 0.007719,
          entertainment: 0.007643,
        },
        confidence: 0.95867,
      },
      sport: { type: 'noul', noul: 0.982549 },
      politics: { type: 'noul', noul: 0.015996 },
    },
    usage: { input_tokens: 132, output_tokens: 0, decisions: 3, cost_usd: 0.000066 },
    latency_ms: 38.893,
  },
};
