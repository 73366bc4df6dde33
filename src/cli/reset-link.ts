import { OPERATOR } from '../access/actor.ts';
import { endSignIns } from '../accounts/end-sign-ins.ts';
import { SERVICE_URL, type Values } from '../config/settings.ts';
import { Links } from '../console/people/links.ts';
import { resetLink } from '../console/people/reset-link.ts';
import { type DataOptions, withData } from './command.ts';
import { secretOf } from './console-parts.ts';
import { userByEmail } from './lookup.ts';
import { printLine } from './output.ts';
import { findAddress } from './server-addresses.ts';

/**
 * Prints a link with which the user of that address sets a password, and ends the old one and earlier links. Removes
 * the user's second factor, because who needs the operator's help may have lost both, and passkeys, which somebody else
 * may have added.
 * Rejects with `not_found`.
 */
export async function printResetLink(
  options: DataOptions & Values<'publicUrl' | 'url'>,
  email: string,
): Promise<void> {
  const { user, link, ended } = await withData(options, async (context) => {
    const { database, store, clock, identifiers } = context;
    const found = await userByEmail({ store }, email);
    const { publicUrl, url = findAddress(options.data, 'service') } = options;
    const parts = {
      database: await database.signIn(),
      secret: await secretOf(options.data, database),
      links: new Links(() => publicUrl ?? url ?? SERVICE_URL),
      clock,
      identifiers,
    };
    const had = await endSignIns(context, OPERATOR, found.id);
    return { user: found, link: await resetLink(parts, found.id), ended: had };
  });
  if (ended.had_second_factor) printLine('The second factor is removed: the new password alone signs in.');
  const { passkeys } = ended;
  if (passkeys > 0) printLine(`${passkeys} ${passkeys === 1 ? 'passkey is' : 'passkeys are'} removed.`);
  printLine(
    `${user.name} <${user.email}> sets a password by this link, once, within an hour. The old password and earlier links have ended, but whoever reads mails to that address can request another link:`,
  );
  printLine(link);
}
