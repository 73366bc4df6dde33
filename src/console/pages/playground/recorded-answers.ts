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
    id: 'dec_eC3YwYzcNDbR3ee00WsWgMsf',
    object: 'decision',
    created: 1796146981,
    model: 'decision-1',
    mode: 'fast',
    answers: {
      refund: { type: 'noul', noul: 0.971425, threshold: 0.9, decision: true },
      team: {
        type: 'choice',
        choice: 'billing',
        probabilities: { billing: 0.956026, shipping: 0.023184, technical: 0.008734, sales: 0.012056 },
        confidence: 0.941368,
      },
      urgency: {
        type: 'score',
        score: 1.795649,
        probabilities: { '0': 0.010449, '1': 0.443221, '2': 0.286562, '3': 0.259768 },
        legend: { '0': 'can wait', '1': 'this week', '2': 'today', '3': 'right now' },
        confidence: 0.443221,
      },
    },
    usage: { input_tokens: 117, output_tokens: 0, decisions: 3, cost_usd: 0.000059 },
    latency_ms: 61.295,
  },
  'Assistant request': {
    id: 'dec_zRJw6REn857qAGKwpEH8TFP1',
    object: 'decision',
    created: 1796146981,
    model: 'decision-1',
    mode: 'fast',
    answers: {
      intent: {
        type: 'choice',
        choice: 'book_restaurant',
        probabilities: {
          book_restaurant: 0.98779,
          get_weather: 0.002069,
          play_music: 0.00202,
          set_alarm: 0.00353,
          find_route: 0.004591,
        },
        confidence: 0.984737,
      },
      restaurant: { type: 'noul', noul: 0.975407 },
      music: { type: 'noul', noul: 0.017047 },
    },
    usage: { input_tokens: 100, output_tokens: 0, decisions: 3, cost_usd: 0.00005 },
    latency_ms: 33.51,
  },
  'Product review': {
    id: 'dec_pJqASlCocw1TtnwjVrSnPWgW',
    object: 'decision',
    created: 1796146981,
    model: 'decision-1',
    mode: 'fast',
    answers: {
      sentiment: {
        type: 'choice',
        choice: 'negative',
        probabilities: { positive: 0.030646, neutral: 0.090444, negative: 0.87891 },
        confidence: 0.818365,
      },
      about: {
        type: 'choice',
        choice: 'battery',
        probabilities: { screen: 0.005225, battery: 0.963846, sound: 0.014771, keyboard: 0.016158 },
        confidence: 0.951795,
      },
      stars: {
        type: 'score',
        score: 0.405583,
        probabilities: { '0': 0.602659, '1': 0.391239, '2': 0.004406, '3': 0.001252, '4': 0.000444 },
        legend: {
          '0': 'very dissatisfied',
          '1': 'dissatisfied',
          '2': 'mixed',
          '3': 'satisfied',
          '4': 'very satisfied',
        },
        confidence: 0.602659,
      },
    },
    usage: { input_tokens: 130, output_tokens: 0, decisions: 3, cost_usd: 0.000065 },
    latency_ms: 50.052,
  },
  'Suspicious text': {
    id: 'dec_SUh3OlgcxFamMD8MbDrqpU99',
    object: 'decision',
    created: 1796146981,
    model: 'decision-1',
    mode: 'fast',
    answers: {
      spam: { type: 'noul', noul: 0.979686, threshold: 0.85, decision: true },
      kind: {
        type: 'choice',
        choice: 'prize',
        probabilities: { prize: 0.737562, appointment: 0.07256, personal: 0.151896, delivery: 0.037982 },
        confidence: 0.650083,
      },
    },
    usage: { input_tokens: 111, output_tokens: 0, decisions: 2, cost_usd: 0.000056 },
    latency_ms: 40.104,
  },
  'News in JSON': {
    id: 'dec_Hnw5rwx2PU44jj0gMu3LqvQp',
    object: 'decision',
    created: 1796146981,
    model: 'decision-1',
    mode: 'fast',
    answers: {
      topic: {
        type: 'choice',
        choice: 'sport',
        probabilities: {
          sport: 0.968846,
          business: 0.009014,
          politics: 0.007992,
          technology: 0.006856,
          entertainment: 0.007292,
        },
        confidence: 0.961057,
      },
      sport: { type: 'noul', noul: 0.981046 },
      politics: { type: 'noul', noul: 0.019367 },
    },
    usage: { input_tokens: 132, output_tokens: 0, decisions: 3, cost_usd: 0.000066 },
    latency_ms: 54.842,
  },
};
