/** The request of the benches: five questions of all types about one record of about 300 tokens. */
export const FIVE_QUESTIONS = {
  model: 'decision-1',
  state: [
    'Subject: Charged twice and the second parcel never came',
    'From: Jane Miller, customer since March 2021, order 8812, express delivery, two lamps and one cable.',
    'Hello, I ordered two lamps on the third of the month and paid by card. On Tuesday I saw that my card was charged',
    'two times for the same order, once for 48.90 and once more for 48.90. I wrote to you on Wednesday and was told that',
    'somebody would call me back within a day, but nobody did. Yesterday one parcel arrived with one lamp in it, which',
    'works well and looks just like the picture. The second lamp and the cable are still missing, and the tracking page',
    'has said "arriving tomorrow" for four days now. I need the second lamp before the weekend, because we open our new',
    'shop on Saturday and the room is dark without it. Please give the second payment back to my card, tell me where the',
    'rest of my order is, and if it cannot be here by Friday then cancel it and refund it as well. I have been a customer',
    'for years and was always happy with you, so I hope that you can sort this out today. If you need the receipts or a',
    'photo of the parcel label, write me and I will send both at once. You can reach me by phone all day, best before',
    'noon, or by mail at this address. Thank you for your help in advance, and kind regards from a rainy harbour town.',
  ].join('\n'),
  questions: {
    refund: { type: 'noul', instructions: 'Does the customer ask for money back?' },
    phone: { type: 'noul', instructions: 'Can the customer be reached by phone?' },
    team: {
      type: 'choice',
      instructions: 'Which team should handle this message?',
      criteria: {
        billing: 'payments, refunds, invoices',
        shipping: 'parcels, tracking, delays',
        technical: 'bugs and outages',
        sales: 'new purchases and quotes',
      },
    },
    mood: {
      type: 'choice',
      instructions: 'What is the mood of the writer?',
      criteria: { calm: null, annoyed: null, furious: null },
    },
    urgency: {
      type: 'score',
      instructions: 'How urgent is the message?',
      criteria: ['can wait', 'this week', 'today'],
    },
  },
} as const;
