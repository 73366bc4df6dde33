import type { Command } from 'commander';
import { CLIENT_SETTINGS } from '../config/settings.ts';
import { addSettings } from './command-settings.ts';
import type { McpOptions } from './run-mcp.ts';

/** Adds `tds mcp`. */
export function registerMcp(program: Command): void {
  addSettings(program.command('mcp'), [...CLIENT_SETTINGS, 'data'])
    .description(
      'offer the tools decide, list_models and usage of a running service to an agent, by the Model Context Protocol on standard input and output',
    )
    .addHelpText(
      'after',
      '\nAn agent starts it by itself: {"command": "tds", "args": ["mcp"], "env": {"TDS_API_KEY": "sk_svc_…"}}.\nAgents that speak HTTP ask the service directly, at /mcp, with the API key as bearer.\n\nExample:\n  $ tds mcp --url https://tds.example.com',
    )
    .action(async (options: McpOptions) => {
      // Loaded only here, because the protocol's library would slow every other command down.
      const { runMcp } = await import('./run-mcp.ts');
      await runMcp(options);
    });
}
