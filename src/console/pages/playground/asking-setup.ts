import { api, call } from '../client.ts';

/** The facts of the organization that a request needs. */
export interface Setup {
  readonly keys: readonly { readonly id: string; readonly name: string; readonly project_id: string }[];
  readonly projects: readonly { readonly id: string; readonly name: string }[];
  readonly models: readonly {
    readonly id: string;
    readonly context_tokens: number;
    readonly input_price_micros_per_million_tokens: number;
  }[];
  /** True if the organization has credit, and a tier with API access. */
  readonly can_pay: boolean;
  readonly available_micros: number;
}

/** Loads them. Rejects with an `ApiError`. */
export async function loadSetup(organization_id: string): Promise<Setup> {
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
    can_pay: tier > 0 && available_micros > 0,
    available_micros,
  };
}
