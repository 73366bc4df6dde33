import type { Command } from 'commander';
import { MODEL_SETTINGS } from '../config/settings.ts';
import { jsonCommand } from './command.ts';
import { addSettings } from './command-settings.ts';
import type { DoctorOptions } from './run-doctor.ts';

/** Adds `tds doctor`. */
export function registerDoctor(program: Command): void {
  const command = jsonCommand(program, {
    usage: 'doctor',
    description:
      'say what this machine has for the service: weights, upstreams, device, kernels, threads, addon, data, version, backups, clock, memory, disk, file descriptors, port; exit code 1 when something is broken',
    example: 'tds doctor --data ./data',
  });
  addSettings(command, [...MODEL_SETTINGS, 'backupDirectory', 'host', 'port']).action(
    async (options: DoctorOptions) => {
      const { runDoctor } = await import('./run-doctor.ts');
      await runDoctor(options);
    },
  );
}
