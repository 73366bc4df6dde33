import { createTransport } from 'nodemailer';

/** A mail in plain text. */
export interface Mail {
  /** The one recipient's address. */
  readonly to: string;
  readonly subject: string;
  readonly text: string;
  /** The same for each try of the same mail, so that mail programs show it once. */
  readonly id?: string;
}

/** Sends mails. */
export interface Mailer {
  /** Resolves when the mail is handed over. Rejects with `MailNotSent`. */
  send(mail: Mail): Promise<void>;
  close(): void;
}

/** The mail server did not accept a mail. */
export class MailNotSent extends Error {
  override readonly name = 'MailNotSent';
}

/** The timeouts of one mail: a silent server must not keep the service from stopping. */
const TIMEOUTS_MS = { connectionTimeout: 10_000, greetingTimeout: 10_000, socketTimeout: 30_000 };

/**
 * Returns a mailer for an SMTP server: `smtp://` (STARTTLS where it is offered, or always with
 * `?requireTLS=true`) or `smtps://`, with user and password.
 */
export function smtpMailer(url: string, from: string): Mailer {
  const transport = createTransport({ url, ...TIMEOUTS_MS }, { from });
  return {
    async send({ to, subject, text, id }) {
      try {
        // An object, so that the address is not parsed, whatever characters it has.
        const messageId = id === undefined ? {} : { messageId: `<${id}>` };
        await transport.sendMail({ to: { name: '', address: to }, subject, text, ...messageId });
      } catch (error) {
        throw new MailNotSent('The mail server did not take a mail.', { cause: error });
      }
    },
    close: () => transport.close(),
  };
}

/** Returns a mailer that writes mails as plain text blocks, for a service without a mail server. */
export function printingMailer(write: (text: string) => void): Mailer {
  return {
    send: ({ to, subject, text }) => {
      write(`\n--- mail to ${to}\nSubject: ${subject}\n\n${text}\n--- end of mail\n\n`);
      return Promise.resolve();
    },
    close: () => undefined,
  };
}
