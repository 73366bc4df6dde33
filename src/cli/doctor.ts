import type { Command } from 'commander';
import { MODEL_SETTINGS, type ModelConfig } from '../config/settings.ts';
import { type JsonOptions, jsonCommand } from './command.ts';
import { addSettings } from './settings.ts';

/** `tds doctor` */
export function registerDoctor(program: Command): void {
  const command = jsonCommand(program, {
    usage: 'doctor',
    description:
      'say what this machine has for the service: weights, device, native engine, data; exit code 1 when something is broken',
    example: 'tds doctor --data ./data',
  });
  addSettings(command, MODEL_SETTINGS).action(async (options: JsonOptions & ModelConfig) => {
    const { runDoctor } = await import('./run-doctor.ts');
    await runDoctor(options);
  });
}
