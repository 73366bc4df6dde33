import { consoleSecret, SecretRefused } from '../console/people/secret.ts';
import { systemErrorCode } from '../system-error-code.ts';
import { CommandFailed } from './command-failed.ts';

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
