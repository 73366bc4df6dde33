import { isPostgres, POSTGRES_BACKUPS, SQLITE } from './database-address.ts';
import type { Effective } from './effective.ts';
import { PADDLE_SETTINGS, type SettingName, settingOf } from './settings.ts';

/** Settings that contradict each other, with one sentence about them. */
export interface Contradiction {
  readonly names: readonly SettingName[];
  readonly sentence: string;
}

const PADDLE_REQUIRED = [
  'paddleApiKey',
  'paddleWebhookSecret',
  'paddleProductId',
] as const satisfies readonly SettingName[];

/** Returns the first contradiction between these settings, or null. */
export function contradiction(effective: readonly Effective[]): Contradiction | null {
  const given = new Set(effective.filter(({ value }) => value !== undefined).map(({ name }) => name));
  if (given.has('tlsCert') !== given.has('tlsKey')) {
    return {
      names: ['tlsCert', 'tlsKey'],
      sentence: '--tls-cert and --tls-key go together: give both or neither.',
    };
  }
  if (given.has('smtpUrl') && !given.has('mailFrom')) {
    const [server, sender] = (['smtpUrl', 'mailFrom'] as const).map((name) => settingOf(name).variable);
    return { names: ['smtpUrl', 'mailFrom'], sentence: `${server} needs ${sender}: who mails come from.` };
  }
  const database = effective.find(({ name }) => name === 'database')?.text ?? SQLITE;
  if (given.has('backupEvery') && isPostgres(database)) {
    return {
      names: ['backupEvery', 'database'],
      sentence: `--backup-every is for SQLite: ${POSTGRES_BACKUPS}.`,
    };
  }
  const count = PADDLE_REQUIRED.filter((name) => given.has(name)).length;
  if (count !== 0 && count !== PADDLE_REQUIRED.length) {
    const variables = PADDLE_REQUIRED.map((name) => settingOf(name).variable);
    return { names: PADDLE_SETTINGS, sentence: `Paddle needs all of ${variables.join(', ')}.` };
  }
  return null;
}
