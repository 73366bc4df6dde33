import { isJsonObject, type JsonObject, type JsonValue, jsonValueOf } from '../../../json/json-value.ts';

/** A record with questions for a first visit, in the shape of a request's body. */
export interface Example {
  readonly name: string;
  readonly state: string | Readonly<Record<string, unknown>>;
  readonly questions: Readonly<Record<string, ExampleQuestion>>;
}

type ExampleQuestion = { readonly instructions: string } & (
  | { readonly type: 'noul'; readonly threshold?: number }
  | { readonly type: 'choice'; readonly criteria: Readonly<Record<string, string>> }
  | { readonly type: 'score'; readonly criteria: readonly string[] }
);

/** Kinds of records that the embedded model answers well: messages, routing, intents, reviews and news. */
export const EXAMPLES: readonly Example[] = [
  {
    name: 'Support message',
    state:
      'Hello, I was charged twice for order 8812 last week. I only ordered one pair of shoes. ' +
      'Please give the second payment back, I need the money before Friday.',
    questions: {
      refund: {
        type: 'noul',
        instructions: 'Does the customer ask for money back?',
        threshold: 0.9,
      },
      team: {
        type: 'choice',
        instructions: 'Which team should handle this message?',
        criteria: {
          billing: 'payments, invoices and refunds',
          shipping: 'delivery and tracking',
          technical: 'bugs, errors and outages',
          sales: 'new purchases and quotes',
        },
      },
      urgency: {
        type: 'score',
        instructions: 'How urgent is the message?',
        criteria: ['can wait', 'this week', 'today', 'right now'],
      },
    },
  },
  {
    name: 'Assistant request',
    state: 'Book a table for four at an Italian restaurant near the station tomorrow evening at eight.',
    questions: {
      intent: {
        type: 'choice',
        instructions: 'What does the user want?',
        criteria: {
          book_restaurant: 'reserve a table at a restaurant',
          get_weather: 'ask about the weather',
          play_music: 'listen to music',
          set_alarm: 'set an alarm or a timer',
          find_route: 'find the way to a place',
        },
      },
      restaurant: { type: 'noul', instructions: 'Is the request about a restaurant?' },
      music: { type: 'noul', instructions: 'Is the request about music?' },
    },
  },
  {
    name: 'Product review',
    state:
      'The battery of this laptop is a great disappointment: it hardly lasts two hours, and after a month it would not ' +
      'charge at all. I have sent it back and will not buy this brand again.',
    questions: {
      sentiment: {
        type: 'choice',
        instructions: 'What is the sentiment of the review?',
        criteria: { positive: '', neutral: '', negative: '' },
      },
      about: {
        type: 'choice',
        instructions: 'Which part of the product is the review about?',
        criteria: {
          screen: 'display and picture',
          battery: 'battery and charging',
          sound: 'speakers and headphones',
          keyboard: 'keys and touchpad',
        },
      },
      stars: {
        type: 'score',
        instructions: 'How satisfied is the customer?',
        criteria: ['very dissatisfied', 'dissatisfied', 'mixed', 'satisfied', 'very satisfied'],
      },
    },
  },
  {
    name: 'Suspicious text',
    state:
      'CONGRATULATIONS! Your number has won a 1,000 pound prize. Call 09061 701 461 now to claim. ' +
      'Offer ends tonight. Calls cost 150p per minute.',
    questions: {
      spam: { type: 'noul', instructions: 'Is this message spam?', threshold: 0.85 },
      kind: {
        type: 'choice',
        instructions: 'What kind of message is it?',
        criteria: {
          prize: 'says that a prize was won',
          appointment: 'reminds of an appointment',
          personal: 'a private message between people who know each other',
          delivery: 'news of a parcel',
        },
      },
    },
  },
  {
    name: 'News in JSON',
    state: {
      headline: 'Late goal sends United into the cup final',
      body: 'A header in the last minute gave the home side a 2-1 win in front of 60,000 spectators. The coach praised his young striker after the match.',
      source: 'sports desk',
      words: 412,
    },
    questions: {
      topic: {
        type: 'choice',
        instructions: 'What is the article about?',
        criteria: {
          sport: 'matches, athletes and results',
          business: 'companies and markets',
          politics: 'governments and elections',
          technology: 'computers and devices',
          entertainment: 'film, music and celebrities',
        },
      },
      sport: { type: 'noul', instructions: 'Is the article about sport?' },
      politics: { type: 'noul', instructions: 'Is the article about politics?' },
    },
  },
];

/** Returns an example as the body of a request. */
export function exampleBody({ state, questions }: Example): JsonObject<JsonValue> | null {
  const body = jsonValueOf({ state, questions });
  return isJsonObject(body) ? body : null;
}
