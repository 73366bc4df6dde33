import { expect, test } from 'bun:test';
import fc from 'fast-check';
import { OPERATOR } from '../../src/access/actor.ts';
import type { AccountContext } from '../../src/access/context.ts';
import { createOrganization } from '../../src/accounts/organizations.ts';
import { randomIdentifiers } from '../../src/contract/identifiers.ts';
import {
  cancelTopUp,
  confirmManualPayment,
  creditByHand,
  refundByHand,
  startTopUp,
} from '../../src/payments/credit.ts';
import { manualProvider } from '../../src/payments/manual.ts';
import { paddleProvider } from '../../src/payments/paddle.ts';
import { assignPaymentEvent, dismissPaymentEvent } from '../../src/payments/resolve-event.ts';
import { handleWebhook } from '../../src/payments/webhooks.ts';
import { TestClock } from '../accounts/support.ts';
import { propertySeed } from '../ledger/support.ts';
import { adjustment, eventId, SETTINGS, sign, transaction } from '../payments/paddle-calls.ts';
import { DOLLAR } from '../support/money.ts';
import { DATABASES, type OpenDatabase } from './databases.ts';

const paddle = paddleProvider(SETTINGS);
const DAY_MS = 86_400_000;
/** The ids that the organizations get from `countedIdentifiers`. */
const ORGANIZATIONS = ['organization_1', 'organization_3'] as const;
/** More than the steps of a history make. */
const MANY = 1_000;

/** Paddle's events of four payments, one of an order without an organization, and of refunds. */
const STORY = [
  ...[
    ['txn_1', '2500', ORGANIZATIONS[0]],
    ['txn_2', '500', ORGANIZATIONS[1]],
    ['txn_3', '9000', 'organization_unknown'],
  ].map(([id = '', cents = '', organization_id = '']) =>
    transaction('transaction.completed', {
      ...{ id, cents },
      custom_data: { payment_id: `pay_of_${id}`, organization_id, amount_micros: Number(cents) * 10_000 },
    }),
  ),
  transaction('transaction.completed', { id: 'txn_4', currency_code: 'EUR' }),
  transaction('transaction.canceled', { id: 'txn_1' }),
  adjustment('adjustment.created', { id: 'adj_1', cents: '1000' }),
  adjustment('adjustment.updated', { id: 'adj_1', cents: '1000' }),
  adjustment('adjustment.created', { id: 'adj_2', action: 'chargeback', cents: '1500' }),
  adjustment('adjustment.created', { id: 'adj_3', action: 'chargeback_reverse', cents: '1500' }),
  adjustment('adjustment.created', { id: 'adj_4', transaction_id: 'txn_3', cents: '500' }),
];

const event = fc.nat({ max: STORY.length - 1 });
const organization = fc.constantFrom(...ORGANIZATIONS);
const amount_micros = fc.integer({ min: 1, max: 60 }).map((dollars) => dollars * DOLLAR);
const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('deliver' as const), event }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constantFrom('credit' as const, 'refund' as const, 'start' as const),
      organization,
      amount_micros,
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('assign' as const), event, organization, amount_micros }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('dismiss' as const), event }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constantFrom('confirm' as const, 'cancel' as const),
      pending: fc.nat({ max: 5 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('wait' as const), days: fc.integer({ min: 1, max: 9 }) }),
  },
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

interface Setup extends OpenDatabase {
  readonly context: AccountContext & { readonly clock: TestClock };
}

/** Ids in the order in which they are asked for, so that both databases get the same. */
function countedIdentifiers() {
  let count = 0;
  return {
    ...randomIdentifiers,
    id: (kind: string) => {
      count += 1;
      return `${kind}_${count}`;
    },
  };
}

async function take({ context }: Setup, given: Step): Promise<unknown> {
  switch (given.kind) {
    case 'deliver': {
      const body = STORY[given.event] ?? '';
      const { body: bytes, signature } = sign(body, { now_ms: context.clock.now_ms() });
      return await handleWebhook(context, paddle, Buffer.from(bytes), signature);
    }
    case 'credit':
      return await creditByHand(context, OPERATOR, { ...given, organization_id: given.organization });
    case 'refund':
      return await refundByHand(context, OPERATOR, { ...given, organization_id: given.organization });
    case 'start':
      return await startTopUp(context, OPERATOR, manualProvider, {
        ...given,
        organization_id: given.organization,
      });
    case 'assign': {
      const assigned = { event_id: eventId(STORY[given.event] ?? ''), organization_id: given.organization };
      const { amount_micros } = given;
      return await assignPaymentEvent(context, OPERATOR, {
        ...assigned,
        ...(given.event === 3 ? { amount_micros } : {}),
      });
    }
    case 'dismiss':
      return await dismissPaymentEvent(context, OPERATOR, eventId(STORY[given.event] ?? ''));
    case 'confirm':
    case 'cancel': {
      const pending = await context.store.payments.pendingPayments();
      const { id = 'payment_unknown', organization_id = ORGANIZATIONS[0] } = pending[given.pending] ?? {};
      return given.kind === 'confirm'
        ? await confirmManualPayment(context, OPERATOR, id)
        : await cancelTopUp(context, OPERATOR, { organization_id, payment_id: id });
    }
    case 'wait':
      return context.clock.advance(given.days * DAY_MS);
  }
}

/** Everything that the ports tell of payments and of what they moved, without the numbers that a database gives out. */
async function told({ store, movements }: Setup): Promise<unknown> {
  const { payments, accounts } = store;
  const of = [];
  for (const organization_id of ORGANIZATIONS) {
    const tiers = await accounts.tierChanges(organization_id, MANY);
    const lines = await movements.movementLines({ organization_id, charges_by: 'day', limit: MANY });
    of.push({
      organization: await accounts.findOrganization(organization_id),
      tiers: tiers.map(({ id: _, ...change }) => change),
      pending: await payments.pendingPayments(organization_id),
      returns: await payments.returnsTo(organization_id, MANY),
      first_ms: await payments.firstCredit_ms(organization_id),
      paid: [
        await payments.paidThrough('manual', organization_id),
        await payments.paidThrough('paddle', organization_id),
      ],
      lines: lines.items.map(({ entry_id: _, ...line }) => line),
    });
  }
  const ofTransactions = [];
  for (const external_id of ['txn_1', 'txn_2', 'txn_3', 'txn_4']) {
    const payment = await payments.findExternalPayment('paddle', external_id);
    ofTransactions.push(
      payment,
      payment && (await payments.returnsOf(payment.id)),
      await payments.returnEvents('paddle', external_id, 'waiting'),
      await payments.returnEvents('paddle', external_id, 'applied'),
    );
  }
  return { of, ofTransactions, events: await payments.listEvents(MANY) };
}

/** A refusal of the rules by its code; anything else is no answer. */
function refusalOf(error: unknown): unknown {
  if (error instanceof Error && 'code' in error) return { refused: error.code };
  throw error;
}

test.skipIf(DATABASES.length < 2)(
  'both databases tell the same of the same payments, refunds and events, in any order',
  async () => {
    const seed = propertySeed('same payments');
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 30 }), async (steps) => {
        const answers = [];
        for (const { open } of DATABASES) {
          const opened = await open();
          try {
            const context = {
              store: opened.store,
              clock: new TestClock(),
              identifiers: countedIdentifiers(),
            };
            for (const name of ['Acme', 'Other']) await createOrganization(context, OPERATOR, { name });
            const setup = { ...opened, context };
            const results = [];
            for (const given of steps) results.push(await take(setup, given).catch(refusalOf));
            answers.push({ results, told: await told(setup) });
          } finally {
            await opened.close();
          }
        }
        expect(answers[1]).toEqual(answers[0]);
      }),
      { seed, numRuns: 30 },
    );
  },
  240_000,
);
