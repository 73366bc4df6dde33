import { api, call } from '../client.ts';
import { formatMoment } from '../format.ts';
import { organizationPath, requestPath } from '../paths.ts';
import { type Organization, organizations } from '../session.ts';
import { chosenZone } from '../time-zone.ts';
import type { Destination } from './matches.ts';

/** Loads what an organization has to go to: projects, keys and the newest requests. A part that fails is left out. */
export async function loadDestinations({
  id: organization_id,
}: Organization): Promise<readonly Destination[]> {
  const { projects, keys, usage } = api.organizations({ organization_id });
  const path = organizationPath(organization_id, 'usage');
  const parts = await Promise.allSettled([
    call(projects.get({ query: {} })).then(({ items }) =>
      items.map(({ id, name }) => ({
        kind: 'Project',
        label: name,
        words: id,
        href: `${path}?project=${id}`,
      })),
    ),
    call(keys.get({ query: {} })).then(({ items }) =>
      items.map(({ id, name, display_prefix, project_name }) => ({
        kind: 'Key',
        label: name,
        words: `${display_prefix} ${project_name} ${id}`,
        href: `${path}?key=${id}`,
      })),
    ),
    call(usage.rows.get({ query: {} })).then(({ items }) =>
      items.map(({ request_id, time_ms, status, api_key }) => ({
        kind: 'Request',
        label: request_id,
        words: `${formatMoment(time_ms, chosenZone())} ${status} ${api_key}`,
        href: requestPath(organization_id, request_id),
      })),
    ),
    documents(),
  ]);
  return parts.flatMap((part) => (part.status === 'fulfilled' ? part.value : []));
}

/** Returns the other organizations of the reader. */
export function otherOrganizations(here: Organization | undefined): readonly Destination[] {
  return organizations.value
    .filter(({ id }) => id !== here?.id)
    .map(({ id, name }) => ({ kind: 'Organization', label: name, href: organizationPath(id, 'overview') }));
}

/** Loads the documents by their titles, from the navigation of the documents' own pages. */
async function documents(): Promise<readonly Destination[]> {
  const response = await fetch('/docs');
  const page = new DOMParser().parseFromString(await response.text(), 'text/html');
  const links = new Map<string, string>();
  for (const link of page.querySelectorAll<HTMLAnchorElement>('nav a[href^="/docs"]'))
    links.set(link.getAttribute('href') ?? '/docs', link.textContent?.trim() ?? '');
  return [...links].map(([href, label]) => ({ kind: 'Docs', label, href }));
}
