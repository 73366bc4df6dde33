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
    id: 'dec_hDe50xHYWKc50BarbibxFFRR',
    object: 'decision',
    created: 1795755580,
    model: 'decision-1',
    mode: 'fast',
    answers: {
      refund: { type: 'noul', noul: 0.98566, threshold: 0.9, decision: true },
      team: {
        type: 'choice',
        choice: 'billing',
        probabilities: { billing: 0.966894, shipping: 0.022673, technical: 0.004133, sales: 0.0063 },
        confidence: 0.955859,
      },
      urgency: {
        type: 'score',
        score: 1.297538,
        probabilities: { '0': 0.01144, '1': 0.802309, '2': 0.063524, '3': 0.122727 },
        legend: { '0': 'can wait', '1': 'this week', '2': 'today', '3': 'right now' },
        confidence: 0.802309,
      },
    },
    usage: { input_tokens: 117, output_tokens: 0, decisions: 3, cost_usd: 0.000059 },
    latency_ms: 69.994,
  },
  'Assistant request': {
    id: 'dec_fRDkEZ2WGzp2mmgFrAA3Nali',
    object: 'decision',
    created: 1795755580,
    model: 'decision-1',
    mode: 'fast',
    answers: {
      intent: {
        type: 'choice',
        choice: 'book_restaurant',
        probabilities: {
          book_restaurant: 0.973358,
          get_weather: 0.001237,
          play_music: 0.000747,
          set_alarm: 0.000634,
          find_route: 0.024024,
        },
        confidence: 0.966698,
      },
      restaurant: { type: 'noul', noul: 0.985318 },
      music: { type: 'noul', noul: 0.009249 },
    },
    usage: { input_tokens: 100, output_tokens: 0, decisions: 3, cost_usd: 0.00005 },
    latency_ms: 51.178,
  },
  'Product review': {
    id: 'dec_9RXzaNLPb9vwc3nwxAuvG5M4',
    object: 'decision',
    created: 1795755580,
    model: 'decision-1',
    mode: 'fast',
    answers: {
      sentiment: {
        type: 'choice',
        choice: 'negative',
        probabilities: { positive: 0.232706, neutral: 0.229163, negative: 0.538131 },
        confidence: 0.307197,
      },
      about: {
        type: 'choice',
        choice: 'battery',
        probabilities: { screen: 0.002304, battery: 0.98255, sound: 0.005007, keyboard: 0.010139 },
        confidence: 0.976733,
      },
      stars: {
        type: 'score',
        score: 0.553463,
        probabilities: { '0': 0.536042, '1': 0.415954, '2': 0.01778, '3': 0.018947, '4': 0.011277 },
        legend: {
          '0': 'very dissatisfied',
          '1': 'dissatisfied',
          '2': 'mixed',
          '3': 'satisfied',
          '4': 'very satisfied',
        },
        confidence: 0.536042,
      },
    },
    usage: { input_tokens: 130, output_tokens: 0, decisions: 3, cost_usd: 0.000065 },
    latency_ms: 66.576,
  },
  'Suspicious text': {
    id: 'dec_QjtalSapAcuvU1xeUWsrNY2B',
    object: 'decision',
    created: 1795755580,
    model: 'decision-1',
    mode: 'fast',
    answers: {
      spam: { type: 'noul', noul: 0.894293, threshold: 0.85, decision: true },
      kind: {
        type: 'choice',
        choice: 'prize',
        probabilities: { prize: 0.894343, appointment: 0.009455, personal: 0.070096, delivery: 0.026106 },
        confidence: 0.859124,
      },
    },
    usage: { input_tokens: 111, output_tokens: 0, decisions: 2, cost_usd: 0.000056 },
    latency_ms: 53.578,
  },
  'News in JSON': {
    id: 'dec_UABXH1f1wiwUSPPC8Us4FTHs',
    object: 'decision',
    created: 1795755580,
    model: 'decision-1',
    mode: 'fast',
    answers: {
      topic: {
        type: 'choice',
        choice: 'sport',
        probabilities: {
          sport: 0.996652,
          business: 0.001532,
          politics: 0.000861,
          technology: 0.000397,
          entertainment: 0.000558,
        },
        confidence: 0.995815,
      },
      sport: { type: 'noul', noul: 0.992797 },
      politics: { type: 'noul', noul: 0.004326 },
    },
    usage: { input_tokens: 132, output_tokens: 0, decisions: 3, cost_usd: 0.000066 },
    latency_ms: 66.585,
  },
};
