import { Command, CommanderError } from 'commander';
import { AccountError } from '../access/account-error.ts';
import { CatalogChangeRefused } from '../catalog/changes.ts';
import { PaymentProviderFailed } from '../payments/provider.ts';
import { registerAudit } from './audit.ts';
import { registerBackup } from './backup.ts';
import { registerCalibrate } from './calibrate.ts';
import { CommandFailed, WrongSettings } from './command-failed.ts';
import { applySettings } from './command-settings.ts';
import { asksForExample, registerConfig } from './config.ts';
import { registerCredit } from './credit.ts';
import { registerDatabase } from './database.ts';
import { registerDecide } from './decide.ts';
import { registerDoctor } from './doctor.ts';
import { registerEval } from './eval.ts';
import { registerHealth } from './health.ts';
import { registerInit } from './init.ts';
import { registerInstall } from './install.ts';
import { registerKeys } from './keys.ts';
import { registerLicenses } from './licenses.ts';
import { registerMcp } from './mcp.ts';
import { registerMembers } from './members.ts';
import { registerModels } from './models.ts';
import { registerOrganizations } from './organizations.ts';
import { registerProjects } from './projects.ts';
import { registerRestore } from './restore.ts';
import { registerServe } from './serve.ts';
import { registerTop } from './top.ts';
import { registerTune } from './tune.ts';
import { registerUsage } from './usage.ts';
import { registerUsers } from './users.ts';
import { runWeightsTrial, WEIGHTS_TRIAL } from './weights-trial.ts';

const EXIT_OK = 0;
const EXIT_FAILED = 1;
const EXIT_USAGE = 2;

/** Returns the whole command line, `tds …`; `writeErr` gets the text for standard error. */
export function createProgram(writeErr = (text: string): unknown => process.stderr.write(text)): Command {
  const program = new Command('tds')
    .configureOutput({ writeErr })
    .description('Typed Decision Service: probabilities for typed questions about one record')
    .option('-V, --version', 'print version, commit, evaluator and the hash of the weights')
    .showHelpAfterError('(add --help for help)')
    .hook('preAction', (_program, command) => {
      if (!asksForExample(command)) applySettings(command);
    })
    .exitOverride();
  registerServe(program);
  registerInit(program);
  registerOrganizations(program);
  registerMembers(program);
  registerUsers(program);
  registerProjects(program);
  registerKeys(program);
  registerCredit(program);
  registerUsage(program);
  registerModels(program);
  registerAudit(program);
  registerBackup(program);
  registerRestore(program);
  registerDatabase(program);
  registerDecide(program);
  registerMcp(program);
  registerEval(program);
  registerCalibrate(program);
  registerTune(program);
  registerDoctor(program);
  registerInstall(program);
  registerConfig(program);
  registerHealth(program);
  registerTop(program);
  registerLicenses(program);
  return program;
}

/**
 * Runs one command line, without the name of the program, and returns its exit code. 0: done. 1: refused or
 * failed, with one sentence on standard error. 2: wrong usage or settings. 128 and the number of a signal:
 * stopped by it (`interruptible`). A command that fails without throwing sets `process.exitCode`.
 */
export async function runCommandLine(program: Command, args: readonly string[]): Promise<number> {
  try {
    if (args[0] === '--version' || args[0] === '-V') {
      const { printVersion } = await import('./version.ts');
      await printVersion();
      return EXIT_OK;
    }
    if (args[0] === WEIGHTS_TRIAL) {
      await runWeightsTrial();
      return EXIT_OK;
    }
    await program.parseAsync(args, { from: 'user' });
    return Number(process.exitCode ?? EXIT_OK);
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === EXIT_OK ? EXIT_OK : EXIT_USAGE;
    const expected =
      error instanceof AccountError ||
      error instanceof CatalogChangeRefused ||
      error instanceof CommandFailed;
    const text = expected ? sentenceOf(error) : `unexpected failure: ${describe(error)}`;
    program.configureOutput().writeErr?.(`tds: ${text}\n`);
    return error instanceof WrongSettings ? EXIT_USAGE : EXIT_FAILED;
  }
}

/** Returns the sentence of an expected failure; why a payment provider failed is the operator's to mend. */
function sentenceOf({ message, cause }: Error): string {
  return cause instanceof PaymentProviderFailed ? cause.message : message;
}

/** Returns only the innermost message: a wrapping one can quote the parameters of a statement. */
function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause === undefined ? error.message : describe(error.cause);
}
