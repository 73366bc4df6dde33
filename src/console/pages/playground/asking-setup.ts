import { api, call } from '../client.ts';

/** The facts of the organization that a request needs. */
export type Setup = Awaited<ReturnType<typeof loadSetup>>;

/** Loads them. Rejects with an `ApiError`. */
export async function loadSetup(organization_id: string) {
  const within = api.organizations({ organization_id });
  const [keys, projects, models, { tier, available_micros }] = await Promise.all([
    call(within.keys.get({ query: {} })),
    call(within.projects.get({ query: {} })),
    call(within.models.get()),
    call(within.billing.get()),
  ]);
  return {
    keys: keys.items,
    projects: projects.items,
    models: models.items,
    /** True if the organization has credit, and a tier with API access. */
    can_pay: tier > 0 && available_micros > 0,
    available_micros,
  };
}
