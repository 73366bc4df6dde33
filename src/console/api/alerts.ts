import { Type } from '@sinclair/typebox';
import { Elysia } from 'elysia';
import { markAlertsRead, receivedAlerts } from '../../alerts/received.ts';
import { oneOf } from '../../json/one-of.ts';
import { ALERT_KINDS } from '../../store/alert-records.ts';
import { answerOf, Done, done, listOf, Micros, nullable, Time } from './schemas.ts';
import type { ConsoleServices } from './services.ts';
import { signedIn } from './signed-in.ts';

const ReceivedAlert = answerOf({
  id: Type.Integer(),
  organization_id: Type.String(),
  organization_name: Type.String(),
  kind: oneOf(ALERT_KINDS),
  subject_id: Type.String(),
  subject_name: nullable(Type.String()),
  amount_micros: nullable(Micros),
  limit_micros: nullable(Micros),
  from_tier: nullable(Type.Integer()),
  to_tier: nullable(Type.Integer()),
  expires_at_ms: nullable(Time),
  created_at_ms: Time,
  read_at_ms: nullable(Time),
});

/** Returns the routes of a person's own alerts: the newest, reading them, and whether they are mailed. */
export function alertRoutes(services: ConsoleServices) {
  return new Elysia({ prefix: '/alerts' })
    .use(signedIn(services))
    .get('/', ({ session: { user_id } }) => receivedAlerts(services, user_id), {
      response: answerOf({
        unread: Type.Integer(),
        items: listOf(ReceivedAlert),
        gets_mails: Type.Boolean(),
      }),
    })
    .post(
      '/read',
      ({ session: { user_id }, body: { up_to_id } }) => done(markAlertsRead(services, user_id, up_to_id)),
      {
        body: Type.Object({ up_to_id: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }) }),
        response: Done,
      },
    )
    .patch(
      '/',
      ({ session: { user_id }, body: { gets_mails } }) =>
        done(services.store.alerts.writeAlertMails(user_id, gets_mails)),
      { body: Type.Object({ gets_mails: Type.Boolean() }), response: Done },
    );
}
