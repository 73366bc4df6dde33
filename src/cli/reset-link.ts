import { SERVICE_URL, type Values } from '../config/settings.ts';
import { Links } from '../console/people/links.ts';
import { resetLink } from '../console/people/reset-link.ts';
import { type DataOptions, withData } from './command.ts';
import { secretOf } from './console-parts.ts';
import { userByEmail } from './lookup.ts';
import { printLine } from './output.ts';
import { findAddress } from './server-addresses.ts';

/** Prints a link with which the user of that address sets a password. Rejects with `not_found`. */
export async function printResetLink(
  options: DataOptions & Values<'publicUrl' | 'url'>,
  email: string,
): Promise<void> {
  const { user, link } = await withData(options, async ({ database, store, clock, identifiers }) => {
    const found = await userByEmail({ store }, email);
    const { publicUrl, url = findAddress(options.data, 'service') } = options;
    const parts = {
      database: await database.signIn(),
      secret: await secretOf(options.data, database),
      links: new Links(() => publicUrl ?? url ?? SERVICE_URL),
      clock,
      identifiers,
    };
    return { user: found, link: await resetLink(parts, found.id) };
  });
  printLine(`${user.name} <${user.email}> sets a password by this link, once, within an hour:`);
  printLine(link);
}
