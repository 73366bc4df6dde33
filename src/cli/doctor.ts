import type { Command } from 'commander';
import { type ModelConfig, modelOptions } from '../config.ts';
import { type JsonOptions, jsonCommand } from './command.ts';

/** `tds doctor` */
export function registerDoctor(program: Command): void {
  const command = jsonCommand(program, {
    usage: 'doctor',
    description:
      'say what this machine has for the service: weights, device, native engine, data; exit code 1 when something is broken',
    example: 'tds doctor --data ./data',
  });
  for (const option of modelOptions()) command.addOption(option);
  command.action(async (options: JsonOptions & ModelConfig) => {
    const { runDoctor } = await import('./run-doctor.ts');
    await runDoctor(options);
  });
}
