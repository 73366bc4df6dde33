import type { Command } from 'commander';
import { OPERATOR } from '../access/actor.ts';
import { archiveProject, changeProject, createProject, listProjects } from '../accounts/projects.ts';
import { formatDollars } from '../contract/money.ts';
import { type JsonOptions, jsonCommand, type ListOptions, listCommand, withData } from './command.ts';
import { organizationId, projectId } from './lookup.ts';
import { formatLimit, formatTime, printJson, printLine, printRows } from './output.ts';
import { askToForgetKeys, whenRefused } from './reload-socket.ts';
import { dollarsOrNone, type NONE, nullIfNone } from './values.ts';

/** Adds `tds project …`. */
export function registerProjects(program: Command): void {
  const parent = program.command('project').description('projects: groups of API keys and usage');

  registerCreate(parent);
  registerList(parent);
  registerRename(parent);
  registerLimit(parent);
  registerArchive(parent);
}

function registerCreate(parent: Command): void {
  jsonCommand(parent, {
    usage: 'create',
    description: 'create a project',
    example: 'tds project create "Acme" "Support triage"',
  })
    .argument('<org>', 'id or unique name')
    .argument('<name>')
    .action(async (text: string, name: string, options: JsonOptions) => {
      const project = await withData(options, async (context) =>
        createProject(context, OPERATOR, { organization_id: await organizationId(context, text), name }),
      );
      if (options.json) printJson(project);
      else printLine(`Created project ${project.name} (${project.id}).`);
    });
}

function registerList(parent: Command): void {
  listCommand(parent, {
    usage: 'list',
    description: 'list the active projects, of one organization or of all',
    example: 'tds project list "Acme"',
  })
    .argument('[org]', 'id or unique name')
    .option('--archived', 'list the archived ones instead')
    .action(async (text: string | undefined, options: ListOptions & { readonly archived?: true }) => {
      const projects = await withData(options, async (context) =>
        listProjects(context, OPERATOR, {
          ...(text === undefined ? {} : { organization_id: await organizationId(context, text) }),
          archived: options.archived === true,
        }),
      );
      printRows(options, projects, 'There is no such project.', {
        ID: (row) => row.id,
        NAME: (row) => row.name,
        ORGANIZATION: (row) => row.organization_name,
        'SPENT THIS MONTH': (row) => formatDollars(row.spent_this_month_micros),
        LIMIT: (row) => formatLimit(row.spend_limit_micros),
        CREATED: (row) => formatTime(row.created_at_ms),
        ARCHIVED: (row) => formatTime(row.archived_at_ms),
      });
    });
}

function registerRename(parent: Command): void {
  jsonCommand(parent, {
    usage: 'rename',
    description: 'give a project another name; its keys and usage stay',
    example: 'tds project rename "Support triage" "Support"',
  })
    .argument('<project>', 'id or unique name')
    .argument('<name>')
    .action(async (text: string, name: string, options: JsonOptions) => {
      const project = await withData(options, async (context) =>
        changeProject(context, OPERATOR, { project_id: await projectId(context, text), name }),
      );
      if (options.json) printJson(project);
      else printLine(`${project.id} is named ${project.name}.`);
    });
}

function registerLimit(parent: Command): void {
  jsonCommand(parent, {
    usage: 'limit',
    description: 'set what a project may spend in a UTC calendar month, or take the limit away',
    example: 'tds project limit "Support triage" 100',
  })
    .argument('<project>', 'id or unique name')
    .argument('<dollars>', 'dollars a month, or "none"', dollarsOrNone)
    .action(async (text: string, limit: number | typeof NONE, options: JsonOptions) => {
      const spend_limit_micros = nullIfNone(limit);
      const project = await withData(options, async (context) =>
        changeProject(context, OPERATOR, { project_id: await projectId(context, text), spend_limit_micros }),
      );
      if (options.json) printJson(project);
      else
        printLine(
          `The monthly spend limit of ${project.name} is ${formatLimit(project.spend_limit_micros)}.`,
        );
    });
}

function registerArchive(parent: Command): void {
  jsonCommand(parent, {
    usage: 'archive',
    description:
      'archive a project for good and revoke its keys; the server on the data refuses them at once, and other nodes within 60 seconds',
    example: 'tds project archive "Support triage"',
  })
    .argument('<project>', 'id or unique name')
    .action(async (text: string, options: JsonOptions) => {
      const project = await withData(options, async (context) =>
        archiveProject(context, OPERATOR, await projectId(context, text)),
      );
      const is_asked = await askToForgetKeys(options.data);
      if (options.json) {
        printJson(project);
        return;
      }
      printLine(`${project.name} is archived and its keys are revoked.`);
      printLine(whenRefused('them', options.data, is_asked));
    });
}
