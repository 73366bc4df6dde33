import type { Command } from 'commander';
import { OPERATOR } from '../access/actor.ts';
import { PADDLE_SETTINGS, type PaddleConfig } from '../config/settings.ts';
import { formatDollars } from '../contract/money.ts';
import {
  cancelTopUp,
  confirmManualPayment,
  listPendingPayments,
  refundByHand,
  startTopUp,
} from '../payments/credit.ts';
import { creditHistory, type HistoryEntry } from '../payments/history.ts';
import { listOrganizationEvents, listPaymentEvents } from '../payments/list-events.ts';
import { manualProvider } from '../payments/manual.ts';
import { assignPaymentEvent, dismissPaymentEvent } from '../payments/resolve-event.ts';
import { type DataContext, type JsonOptions, jsonCommand, withData } from './command.ts';
import { addSettings } from './command-settings.ts';
import { organizationId, payingOrganizationId } from './lookup.ts';
import { addEntry, type EntryOptions, withEntry } from './money-entry.ts';
import { creditText } from './organizations.ts';
import { formatTime, printJson, printLine, printRows, printTable } from './output.ts';
import { paymentProvider } from './payment-provider.ts';
import { dollars, wholeNumber } from './values.ts';

const HISTORY_LIMIT = 100;
const OLDER_LEFT_OUT =
  'tds: Older events were left out: give a larger --limit, or an organization for its events only.\n';

function historyCells(entry: HistoryEntry): string[] {
  const time = formatTime(entry.created_at_ms);
  if (entry.kind === 'tier_change') {
    return [time, entry.kind, '', '', `Tier ${entry.from_tier} to ${entry.to_tier} (${entry.reason})`];
  }
  const { kind, amount_micros, balance_micros, payment_id, project_id } = entry;
  return [
    time,
    kind,
    formatDollars(amount_micros),
    formatDollars(balance_micros),
    payment_id ?? project_id ?? '',
  ];
}

interface EventsOptions extends JsonOptions {
  readonly all?: true;
  readonly limit: number;
}

/** Adds `tds credit …`. */
export function registerCredit(program: Command): void {
  const parent = program
    .command('credit')
    .description('refunds, pending payments, payment events and the credit history');

  registerCheckout(parent);
  registerRefund(parent);
  registerHistory(parent);
  registerPending(parent);
  registerConfirm(parent);
  registerCancel(parent);
  registerEvents(parent);
  registerAssign(parent);
  registerDismiss(parent);
}

function registerCheckout(parent: Command): void {
  const checkout = jsonCommand(parent, {
    usage: 'checkout',
    description:
      'start a top-up and print where to pay it; without the settings of Paddle it waits for "tds credit confirm"',
    example: 'tds credit checkout "Acme" 25',
  });
  addSettings(checkout, PADDLE_SETTINGS)
    .argument('<org>', 'id or unique name')
    .argument('<dollars>', 'amount, within the range of the tier', dollars)
    .action((org: string, amount_micros: number, options: JsonOptions & PaddleConfig) =>
      withData(options, async (context) => {
        const started = await startTopUp(
          context,
          OPERATOR,
          (await paymentProvider(options)) ?? manualProvider,
          {
            organization_id: await organizationId(context, org),
            amount_micros,
          },
        );
        const { payment_id, checkout } = started;
        if (options.json) printJson({ payment_id, url: checkout.url });
        else if (checkout.url === null)
          printLine(`Payment ${payment_id} waits for "tds credit confirm ${payment_id}".`);
        else printLine(`Pay ${payment_id} at ${checkout.url}`);
      }),
    );
}

function registerRefund(parent: Command): void {
  const refund = jsonCommand(parent, {
    usage: 'refund',
    description:
      'take back credit that was paid by hand, after you returned the money; refund other payments at their provider, whose webhook does the same',
    example: 'tds credit refund "Acme" 10',
  });
  addEntry(refund)
    .argument('<org>', 'id or unique name')
    .argument('<dollars>', 'at most what is left of the payments made by hand', dollars)
    .action(async (text: string, amount_micros: number, options: EntryOptions) => {
      const enter = async (context: DataContext, entry_id: string) =>
        refundByHand(context, OPERATOR, {
          organization_id: await organizationId(context, text),
          amount_micros,
          entry_id,
        });
      await withEntry(options, enter, (organization) => creditText(organization, options));
    });
}

function registerHistory(parent: Command): void {
  jsonCommand(parent, {
    usage: 'history',
    description: 'show the movements of credit and the tier changes of an organization, newest first',
    example: 'tds credit history "Acme" --limit 20',
  })
    .argument('<org>', 'id or unique name')
    .option('--limit <number>', 'how many lines', wholeNumber, HISTORY_LIMIT)
    .action(async (text: string, options: JsonOptions & { readonly limit: number }) => {
      const entries = await withData(options, async (context) =>
        creditHistory({ ...context, reader: context.database.movements }, OPERATOR, {
          organization_id: await organizationId(context, text),
          limit: options.limit,
        }),
      );
      if (options.json) printJson(entries);
      else {
        printTable(
          ['TIME', 'KIND', 'AMOUNT', 'BALANCE', 'DETAIL'],
          entries.map(historyCells),
          'Nothing has moved yet.',
        );
      }
    });
}

function registerPending(parent: Command): void {
  jsonCommand(parent, {
    usage: 'pending',
    description: 'list the payments and refunds that are not settled yet, oldest first',
    example: 'tds credit pending',
  })
    .argument('[org]', 'id or unique name')
    .action(async (text: string | undefined, options: JsonOptions) => {
      const payments = await withData(options, async (context) =>
        listPendingPayments(context, OPERATOR, {
          organization_id: text === undefined ? undefined : await organizationId(context, text),
        }),
      );
      printRows(options, payments, 'No payment is pending.', {
        ID: (row) => row.id,
        ORGANIZATION: (row) => row.organization_id,
        PROVIDER: (row) => row.provider,
        KIND: (row) => row.kind,
        AMOUNT: (row) => formatDollars(row.amount_micros),
        CREATED: (row) => formatTime(row.created_at_ms),
      });
    });
}

function registerConfirm(parent: Command): void {
  jsonCommand(parent, {
    usage: 'confirm',
    description: 'confirm that the money of a pending manual payment has arrived: it becomes credit',
    example: 'tds credit confirm pay_0123456789abcdefghijklmn',
  })
    .argument('<payment>', 'id')
    .action(async (payment_id: string, options: JsonOptions) => {
      const payment = await withData(options, (context) =>
        confirmManualPayment(context, OPERATOR, payment_id),
      );
      if (options.json) printJson(payment);
      else printLine(`$${formatDollars(payment.amount_micros)} were added to ${payment.organization_id}.`);
    });
}

function registerCancel(parent: Command): void {
  jsonCommand(parent, {
    usage: 'cancel',
    description:
      'cancel a pending top-up that is not paid, or not with that amount: it cannot be confirmed afterwards; a checkout that is paid nevertheless becomes credit',
    example: 'tds credit cancel pay_0123456789abcdefghijklmn',
  })
    .argument('<payment>', 'id')
    .action(async (payment_id: string, options: JsonOptions) => {
      const canceled = await withData(options, async (context) => {
        const organization_id = await payingOrganizationId(context, payment_id);
        await cancelTopUp(context, OPERATOR, { organization_id, payment_id });
        return { payment_id, organization_id };
      });
      if (options.json) printJson(canceled);
      else printLine(`The top-up ${payment_id} of ${canceled.organization_id} is canceled.`);
    });
}

function registerEvents(parent: Command): void {
  jsonCommand(parent, {
    usage: 'events',
    description:
      'list the events of the payment provider that fit no payment here, newest first; they wait for "assign" or "dismiss"',
    example: ['tds credit events', 'tds credit events "Acme"'],
  })
    .argument('[org]', 'id or unique name: every event that names it or is about a payment of it')
    .option('--all', 'list events of all organizations, with what came of each')
    .option('--limit <number>', 'how many lines', wholeNumber, HISTORY_LIMIT)
    .action(async (text: string | undefined, options: EventsOptions) => {
      const unresolved_only = text === undefined && options.all !== true;
      // One more tells whether there are older ones.
      const limit = options.limit + 1;
      const found = await withData(options, async (context) =>
        text === undefined
          ? listPaymentEvents(context, OPERATOR, { unresolved_only, limit })
          : listOrganizationEvents(context, OPERATOR, {
              organization_id: await organizationId(context, text),
              limit,
            }),
      );
      const events = found.slice(0, options.limit);
      const empty = unresolved_only ? 'No event is unresolved.' : 'No event was received yet.';
      printRows(options, events, empty, {
        EVENT: (row) => row.event_id,
        RECEIVED: (row) => formatTime(row.received_at_ms),
        TYPE: (row) => row.type,
        PAYMENT: (row) => row.payment_external_id ?? '',
        AMOUNT: (row) => (row.amount_micros === null ? '' : formatDollars(row.amount_micros)),
        ORGANIZATION: (row) => row.organization_id ?? '',
        OUTCOME: (row) => row.outcome,
        REASON: (row) => row.reason ?? '',
      });
      if (found.length > events.length) process.stderr.write(OLDER_LEFT_OUT);
    });
}

function registerAssign(parent: Command): void {
  jsonCommand(parent, {
    usage: 'assign',
    description: 'decide whose money an unresolved event is about: it is applied to that organization',
    example: 'tds credit assign evt_01hv8wptq8987qeep44cyrewp9 "Acme"',
  })
    .argument('<event>', 'id, as "tds credit events" shows it')
    .argument('<org>', 'id or unique name')
    .argument(
      '[dollars]',
      'amount without tax, for an event that has none in US dollars, or the part of it that was for credit',
      dollars,
    )
    .action(
      async (event_id: string, text: string, amount_micros: number | undefined, options: JsonOptions) => {
        const event = await withData(options, async (context) =>
          assignPaymentEvent(context, OPERATOR, {
            event_id,
            organization_id: await organizationId(context, text),
            amount_micros,
          }),
        );
        if (options.json) printJson(event);
        else if (event.outcome === 'waiting')
          printLine(
            `The event ${event.event_id} moves nothing yet: it waits until enough of its payment is there, or for "tds credit dismiss".`,
          );
        else printLine(`The event ${event.event_id} was applied to ${event.organization_id}.`);
      },
    );
}

function registerDismiss(parent: Command): void {
  jsonCommand(parent, {
    usage: 'dismiss',
    description:
      'decide that an unresolved or waiting event moves no credit here, also when it comes again; what is pending of it is canceled',
    example: 'tds credit dismiss evt_01hv8wptq8987qeep44cyrewp9',
  })
    .argument('<event>', 'id, as "tds credit events" shows it')
    .action(async (event_id: string, options: JsonOptions) => {
      const event = await withData(options, (context) => dismissPaymentEvent(context, OPERATOR, event_id));
      if (options.json) printJson(event);
      else printLine(`The event ${event.event_id} was dismissed.`);
    });
}
