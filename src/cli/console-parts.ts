import type { Values } from '../config/settings.ts';
import { type Mailer, printingMailer, smtpMailer } from '../console/people/mail.ts';
import { consoleSecret, SecretRefused } from '../console/people/secret.ts';
import { systemErrorCode } from '../system-error-code.ts';
import { CommandFailed } from './command-failed.ts';

type ConsoleConfig = Values<'data' | 'tlsCert' | 'console' | 'publicUrl' | 'signUp' | 'smtpUrl' | 'mailFrom'>;

/**
 * What the console of `tds serve` is made of; undefined where it is off. `own_url` says where the service listens, once it
 * does. Without a mail server, mails go to `print`. Throws `CommandFailed`.
 */
export function consoleParts(options: ConsoleConfig, own_url: () => string, print: (text: string) => void) {
  if (options.console === 'off') return undefined;
  return {
    secret: secretOf(options.data),
    public_url: options.publicUrl ?? null,
    is_https: options.publicUrl?.startsWith('https:') ?? options.tlsCert !== undefined,
    own_url,
    sign_up: options.signUp,
    mailer: mailerOf(options, print),
  };
}

function mailerOf({ smtpUrl, mailFrom }: ConsoleConfig, print: (text: string) => void): Mailer {
  return smtpUrl === undefined || mailFrom === undefined
    ? printingMailer(print)
    : smtpMailer(smtpUrl, mailFrom);
}

/** The console's secret of a data directory, made where there is none. Throws `CommandFailed`. */
export function secretOf(directory: string): string {
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
