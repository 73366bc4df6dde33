import { Type } from '@sinclair/typebox';
import { Elysia } from 'elysia';
import { AccountError } from '../../access/account-error.ts';
import { archiveProject, changeProject, createProject, listProjects } from '../../accounts/projects.ts';
import type { ListedProject } from '../../store/account-records.ts';
import { refusedByRule } from './refusals.ts';
import {
  answerOf,
  Done,
  done,
  Id,
  listOf,
  Micros,
  Name,
  nullable,
  OrganizationParams,
  Time,
} from './schemas.ts';
import type { ConsoleServices } from './services.ts';
import { signedIn } from './signed-in.ts';
import { requireProjectOf } from './within-organization.ts';

const Project = answerOf({
  id: Type.String(),
  name: Type.String(),
  spend_limit_micros: nullable(Micros),
  spent_this_month_micros: Micros,
  active_keys: Type.Integer({ description: 'How many keys end when the project is archived.' }),
  archived_at_ms: nullable(Time),
  created_at_ms: Time,
});

const ProjectParams = Type.Object({ organization_id: Id, project_id: Id });

/** Returns the routes of an organization's projects: list, create, rename, spend limit, archive. */
export function projectRoutes(services: ConsoleServices) {
  return new Elysia({ prefix: '/organizations/:organization_id/projects' })
    .use(signedIn(services))
    .get(
      '/',
      async ({ actor, params: { organization_id }, query }) => {
        const filter = { organization_id, archived: query.archived === 'true' };
        const projects = await listProjects(services, actor, filter);
        return { items: projects.map(shown) };
      },
      {
        params: OrganizationParams,
        query: Type.Object({ archived: Type.Optional(Type.Literal('true')) }),
        response: answerOf({ items: listOf(Project) }),
      },
    )
    .post(
      '/',
      async ({ actor, params: { organization_id }, body: { name } }) => {
        const { id } = await createProject(services, actor, { organization_id, name });
        return { id };
      },
      {
        params: OrganizationParams,
        body: Type.Object({ name: Name }),
        response: answerOf({ id: Type.String() }),
      },
    )
    .patch(
      '/:project_id',
      async ({ actor, params, body }) => {
        await requireProjectOf(services.store, actor, params, 'manage_projects');
        return await done(
          changeProject(services, actor, { project_id: params.project_id, ...body }).catch(refusedChange),
        );
      },
      {
        params: ProjectParams,
        body: Type.Object(
          { name: Type.Optional(Name), spend_limit_micros: Type.Optional(nullable(Micros)) },
          { minProperties: 1 },
        ),
        response: Done,
      },
    )
    .post(
      '/:project_id/archive',
      async ({ actor, params }) => {
        await requireProjectOf(services.store, actor, params, 'manage_projects');
        return await done(archiveProject(services, actor, params.project_id));
      },
      { params: ProjectParams, response: Done },
    );
}

function shown({ organization_id: _, organization_name: __, ...project }: ListedProject) {
  return project;
}

/** Throws the refusal of a change, in which an invalid amount is the spend limit. */
function refusedChange(error: unknown): never {
  if (error instanceof AccountError && error.code === 'invalid_amount') {
    throw refusedByRule(error, 'spend_limit');
  }
  throw error;
}
