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
    id: 'dec_gb678iOmyJCsErBJwGzSzMap',
    object: 'decision',
    created: 1796094828,
    model: 'decision-1',
    mode: 'fast',
    answers: {
      refund: { type: 'noul', noul: 0.945134, threshold: 0.9, decision: true },
      team: {
        type: 'choice',
        choice: 'billing',
        probabilities: { billing: 0.970741, shipping: 0.013811, technical: 0.005062, sales: 0.010386 },
        confidence: 0.960988,
      },
      urgency: {
        type: 'score',
        score: 1.295868,
        probabilities: { '0': 0.022325, '1': 0.735158, '2': 0.166841, '3': 0.075676 },
        legend: { '0': 'can wait', '1': 'this week', '2': 'today', '3': 'right now' },
        confidence: 0.735158,
      },
    },
    usage: { input_tokens: 117, output_tokens: 0, decisions: 3, cost_usd: 0.000059 },
    latency_ms: 29.206,
  },
  'Assistant request': {
    id: 'dec_D9yytJHCevjZtHRQGVWj4g7v',
    object: 'decision',
    created: 1796094829,
    model: 'decision-1',
    mode: 'fast',
    answers: {
      intent: {
        type: 'choice',
        choice: 'book_restaurant',
        probabilities: {
          book_restaurant: 0.992106,
          get_weather: 0.001066,
          play_music: 0.000842,
          set_alarm: 0.001373,
          find_route: 0.004613,
        },
        confidence: 0.990133,
      },
      restaurant: { type: 'noul', noul: 0.972954 },
      music: { type: 'noul', noul: 0.030211 },
    },
    usage: { input_tokens: 100, output_tokens: 0, decisions: 3, cost_usd: 0.00005 },
    latency_ms: 23.085,
  },
  'Product review': {
    id: 'dec_iGvGGRYzQSSETNlls2PaZcSa',
    object: 'decision',
    created: 1796094829,
    model: 'decision-1',
    mode: 'fast',
    answers: {
      sentiment: {
        type: 'choice',
        choice: 'negative',
        probabilities: { positive: 0.030701, neutral: 0.132488, negative: 0.836811 },
        confidence: 0.755217,
      },
      about: {
        type: 'choice',
        choice: 'battery',
        probabilities: { screen: 0.003915, battery: 0.975983, sound: 0.009658, keyboard: 0.010444 },
        confidence: 0.967977,
      },
      stars: {
        type: 'score',
        score: 0.459551,
        probabilities: { '0': 0.586417, '1': 0.370975, '2': 0.039976, '3': 0.001904, '4': 0.000728 },
        legend: {
          '0': 'very dissatisfied',
          '1': 'dissatisfied',
          '2': 'mixed',
          '3': 'satisfied',
          '4': 'very satisfied',
        },
        confidence: 0.586417,
      },
    },
    usage: { input_tokens: 130, output_tokens: 0, decisions: 3, cost_usd: 0.000065 },
    latency_ms: 30.237,
  },
  'Suspicious text': {
    id: 'dec_0hHnUtn8cLW0QmKIvnQZgrfL',
    object: 'decision',
    created: 1796094829,
    model: 'decision-1',
    mode: 'fast',
    answers: {
      spam: { type: 'noul', noul: 0.937119, threshold: 0.85, decision: true },
      kind: {
        type: 'choice',
        choice: 'prize',
        probabilities: { prize: 0.797002, appointment: 0.09143, personal: 0.09084, delivery: 0.020728 },
        confidence: 0.729336,
      },
    },
    usage: { input_tokens: 111, output_tokens: 0, decisions: 2, cost_usd: 0.000056 },
    latency_ms: 25.003,
  },
  'News in JSON': {
    id: 'dec_GJhZz7ck3ZeKYNgxX5E7ZfJb',
    object: 'decision',
    created: 1796094829,
    model: 'decision-1',
    mode: 'fast',
    answers: {
      topic: {
        type: 'choice',
        choice: 'sport',
        probabilities: {
          sport: 0.994946,
          business: 0.001632,
          politics: 0.001309,
          technology: 0.000808,
          entertainment: 0.001305,
        },
        confidence: 0.993682,
      },
      sport: { type: 'noul', noul: 0.977644 },
      politics: { type: 'noul', noul: 0.021392 },
    },
    usage: { input_tokens: 132, output_tokens: 0, decisions: 3, cost_usd: 0.000066 },
    latency_ms: 28.448,
  },
};
