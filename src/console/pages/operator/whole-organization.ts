import type { api } from '../client.ts';

type Route = ReturnType<typeof api.operator.organizations>;

/** One organization, as the API returns it to an operator. */
export type WholeOrganization = NonNullable<Awaited<ReturnType<Route['get']>>['data']>;
