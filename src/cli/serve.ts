import type { Command } from 'commander';
import { SERVE_SETTINGS, type ServeConfig } from '../config/settings.ts';
import { DESCRIPTORS_MIN, descriptorLimit } from '../http/file-descriptors.ts';
import { holdSignals } from '../program/held-signals.ts';
import { type JsonOptions, jsonCommand } from './command.ts';
import { CommandFailed } from './command-failed.ts';
import { addSettings, applySettings, settingsOf } from './command-settings.ts';
import { descriptorsAdvice } from './machine-findings.ts';

/** Adds `tds serve`. */
export function registerServe(program: Command): void {
  const command = jsonCommand(program, {
    usage: 'serve',
    description:
      'answer requests until stopped; with --init or on a terminal, an empty data directory is filled first',
    example: 'tds serve --init --port 8080 --data ./data',
  });
  addSettings(command, SERVE_SETTINGS).action(async (options: JsonOptions & ServeConfig) => {
    // First of all, because a reload that is asked for during the start must not end it.
    holdSignals();
    for (const warning of settingsOf(command).warnings) process.stderr.write(`tds: ${warning}\n`);
    const descriptors = descriptorLimit();
    // Before the rest, because loading anything else would fail with an error of its own.
    if (descriptors < DESCRIPTORS_MIN) throw new CommandFailed(descriptorsAdvice(descriptors));
    // A person sees the result. For a service manager, an unmounted volume must not be silently replaced by
    // an empty database.
    const may_initialize = options.init || (process.stdin.isTTY && process.stdout.isTTY);
    // Loaded only here, because the model's library and the web framework would slow every other command
    // down.
    const { runServer } = await import('./run-server.ts');
    // Copies, because reading the settings again changes the options of the command.
    await runServer(
      { ...options },
      {
        may_initialize,
        settings: settingsOf(command).effective,
        readAgain: () => {
          applySettings(command);
          return { ...settingsOf(command), config: { ...command.opts<ServeConfig>() } };
        },
      },
    );
  });
}
