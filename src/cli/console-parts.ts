import type { Values } from '../config/settings.ts';
import { type Mailer, printingMailer, smtpMailer } from '../console/people/mail.ts';
import { consoleSecret, SecretRefused } from '../console/people/secret.ts';
import { systemErrorCode } from '../errors/system-error-code.ts';
import type { Database } from '../store/database.ts';
import { CommandFailed } from './command-failed.ts';

type ConsoleConfig = Values<'data' | 'tlsCert' | 'console' | 'publicUrl' | 'signUp' | 'smtpUrl' | 'mailFrom'>;

/**
 * Returns the parts of the console of `tds serve`; undefined where it is off. `own_url` returns the service's
 * address, once it listens. Without a mail server, mails go to `print`. Throws `CommandFailed`.
 */
export async function consoleParts(
  options: ConsoleConfig,
  database: Pick<Database, 'consoleSecret'>,
  own_url: () => string,
  print: (text: string) => void,
) {
  if (options.console === 'off') return undefined;
  return {
    secret: await secretOf(options.data, database),
    public_url: options.publicUrl ?? null,
    is_https: options.publicUrl?.startsWith('https:') ?? options.tlsCert !== undefined,
    own_url,
    sign_up: options.signUp,
    mailer: mailerOf(options, print),
    has_mail_server: options.smtpUrl !== undefined,
  };
}

function mailerOf({ smtpUrl, mailFrom }: ConsoleConfig, print: (text: string) => void): Mailer {
  return smtpUrl === undefined || mailFrom === undefined
    ? printingMailer(print)
    : smtpMailer(smtpUrl, mailFrom);
}

/**
 * Returns the console's secret, and creates it where there is none. A shared database holds it, so that a
 * session is valid at all its services; otherwise the data directory does. Throws `CommandFailed`.
 */
export async function secretOf(
  directory: string,
  { consoleSecret: ofDatabase }: Pick<Database, 'consoleSecret'>,
): Promise<string> {
  if (ofDatabase !== null) return await ofDatabase();
  try {
    return consoleSecret(directory);
  } catch (error) {
    if (error instanceof SecretRefused) {
      throw new CommandFailed(`${error.message}: take it away, which signs everybody out of the console.`, {
        cause: error,
      });
    }
    const code = systemErrorCode(error);
    if (code === undefined) throw error;
    throw new CommandFailed(
      `The console's secret in ${directory} cannot be read or made (${code}): give this user the right to it.`,
      { cause: error },
    );
  }
}
