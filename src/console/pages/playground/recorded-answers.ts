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
    id: 'dec_sN7oeP6cTsKZcqS5DS2iLvsC',
    object: 'decision',
    created: 1795969739,
    model: 'decision-1',
    mode: 'fast',
    answers: {
      refund: { type: 'noul', noul: 0.974112, threshold: 0.9, decision: true },
      team: {
        type: 'choice',
        choice: 'billing',
        probabilities: { billing: 0.981988, shipping: 0.010099, technical: 0.001415, sales: 0.006498 },
        confidence: 0.975984,
      },
      urgency: {
        type: 'score',
        score: 1.330861,
        probabilities: { '0': 0.007293, '1': 0.786889, '2': 0.073482, '3': 0.132336 },
        legend: { '0': 'can wait', '1': 'this week', '2': 'today', '3': 'right now' },
        confidence: 0.786889,
      },
    },
    usage: { input_tokens: 117, output_tokens: 0, decisions: 3, cost_usd: 0.000059 },
    latency_ms: 29.302,
  },
  'Assistant request': {
    id: 'dec_PjUX72WxsjjOL6I80ZkcV8dl',
    object: 'decision',
    created: 1795969739,
    model: 'decision-1',
    mode: 'fast',
    answers: {
      intent: {
        type: 'choice',
        choice: 'book_restaurant',
        probabilities: {
          book_restaurant: 0.99415,
          get_weather: 0.000707,
          play_music: 0.000428,
          set_alarm: 0.000459,
          find_route: 0.004256,
        },
        confidence: 0.992687,
      },
      restaurant: { type: 'noul', noul: 0.985031 },
      music: { type: 'noul', noul: 0.017661 },
    },
    usage: { input_tokens: 100, output_tokens: 0, decisions: 3, cost_usd: 0.00005 },
    latency_ms: 25.852,
  },
  'Product review': {
    id: 'dec_0KgyERFYObyKNwajBn3UNF1f',
    object: 'decision',
    created: 1795969739,
    model: 'decision-1',
    mode: 'fast',
    answers: {
      sentiment: {
        type: 'choice',
        choice: 'negative',
        probabilities: { positive: 0.075428, neutral: 0.129151, negative: 0.795421 },
        confidence: 0.693132,
      },
      about: {
        type: 'choice',
        choice: 'battery',
        probabilities: { screen: 0.002179, battery: 0.989681, sound: 0.003809, keyboard: 0.004331 },
        confidence: 0.986241,
      },
      stars: {
        type: 'score',
        score: 0.695846,
        probabilities: { '0': 0.397659, '1': 0.523765, '2': 0.066733, '3': 0.008757, '4': 0.003086 },
        legend: {
          '0': 'very dissatisfied',
          '1': 'dissatisfied',
          '2': 'mixed',
          '3': 'satisfied',
          '4': 'very satisfied',
        },
        confidence: 0.523765,
      },
    },
    usage: { input_tokens: 130, output_tokens: 0, decisions: 3, cost_usd: 0.000065 },
    latency_ms: 31.105,
  },
  'Suspicious text': {
    id: 'dec_MuMBvoN00m5I05l22ezHcErP',
    object: 'decision',
    created: 1795969739,
    model: 'decision-1',
    mode: 'fast',
    answers: {
      spam: { type: 'noul', noul: 0.915842, threshold: 0.85, decision: true },
      kind: {
        type: 'choice',
        choice: 'prize',
        probabilities: { prize: 0.876713, appointment: 0.04623, personal: 0.0648, delivery: 0.012257 },
        confidence: 0.835617,
      },
    },
    usage: { input_tokens: 111, output_tokens: 0, decisions: 2, cost_usd: 0.000056 },
    latency_ms: 27.296,
  },
  'News in JSON': {
    id: 'dec_BRoG0GapyKhEL18nzgi0WpSy',
    object: 'decision',
    created: 1795969739,
    model: 'decision-1',
    mode: 'fast',
    answers: {
      topic: {
        type: 'choice',
        choice: 'sport',
        probabilities: {
          sport: 0.996514,
          business: 0.001518,
          politics: 0.000873,
          technology: 0.00046,
          entertainment: 0.000635,
        },
        confidence: 0.995642,
      },
      sport: { type: 'noul', noul: 0.988427 },
      politics: { type: 'noul', noul: 0.014763 },
    },
    usage: { input_tokens: 132, output_tokens: 0, decisions: 3, cost_usd: 0.000066 },
    latency_ms: 38.196,
  },
};
