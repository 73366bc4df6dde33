import { Type } from '@sinclair/typebox';
import { Elysia } from 'elysia';
import { AccountError } from '../../../access/account-error.ts';
import { cancelTopUp, confirmManualPayment, creditByHand, refundByHand } from '../../../payments/credit.ts';
import { PaymentAnswer, shownPayment } from '../billing.ts';
import { answerOf, Done, done, EntryId, Id, Micros, OrganizationParams } from '../schemas.ts';
import type { ConsoleServices } from '../services.ts';
import { operatorOnly } from './operator-only.ts';

const Balance = answerOf({ credit_micros: Micros, tier: Type.Integer() });

const PaymentParams = Type.Object({ organization_id: Id, payment_id: Id });

/** Returns the routes of an organization's credit: given and refunded by hand, and top-ups confirmed or canceled by hand. */
export function organizationCreditRoutes(services: ConsoleServices) {
  return new Elysia()
    .use(operatorOnly(services))
    .post(
      '/:organization_id/credit',
      async ({ operator, params: { organization_id }, body: { entry_id, amount_micros, is_forced } }) => {
        const given = { organization_id, amount_micros, entry_id, within_range: !is_forced };
        const { credit_micros, tier } = await creditByHand(services, operator, given);
        return { credit_micros, tier };
      },
      {
        params: OrganizationParams,
        body: Type.Object({
          entry_id: EntryId,
          amount_micros: Type.Integer(),
          is_forced: Type.Boolean({ description: "Also outside of the tier's range of one top-up." }),
        }),
        response: Balance,
      },
    )
    .post(
      '/:organization_id/refund',
      async ({ operator, params: { organization_id }, body: { entry_id, amount_micros } }) => {
        const given = { organization_id, amount_micros, entry_id };
        const { credit_micros, tier } = await refundByHand(services, operator, given);
        return { credit_micros, tier };
      },
      {
        params: OrganizationParams,
        body: Type.Object({ entry_id: EntryId, amount_micros: Type.Integer() }),
        response: Balance,
      },
    )
    .post(
      '/:organization_id/payments/:payment_id/confirm',
      async ({ operator, params: { organization_id, payment_id } }) => {
        const payment = await services.store.payments.findPayment(payment_id);
        if (payment?.organization_id !== organization_id) {
          throw new AccountError('not_found', 'There is no such payment.');
        }
        const confirmed = await confirmManualPayment(services, operator, payment_id);
        return shownPayment(confirmed);
      },
      { params: PaymentParams, response: PaymentAnswer },
    )
    .post(
      '/:organization_id/payments/:payment_id/cancel',
      ({ operator, params }) => done(cancelTopUp(services, operator, params)),
      { params: PaymentParams, response: Done },
    );
}
