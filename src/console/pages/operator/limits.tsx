import { useState } from 'preact/hooks';
import { MICROS_PER_DOLLAR, parseDollars } from '../../../contract/money.ts';
import { ApiError, api, call } from '../client.ts';
import { Badge } from '../components/badge.tsx';
import { Button } from '../components/button.tsx';
import { Dialog } from '../components/dialog.tsx';
import { TextField } from '../components/field.tsx';
import { Form, type FormValues } from '../components/form.tsx';
import { Section } from '../components/page-header.tsx';
import { Table } from '../components/table.tsx';
import { showToast } from '../components/toast.tsx';
import { formatMoney, formatNumber } from '../format.ts';
import type { OrganizationProps, WholeOrganization } from './whole-organization.ts';

type Name = keyof WholeOrganization['dedicated'];

interface Limit {
  readonly name: Name;
  readonly label: string;
  /** The label in the table, where it differs from the field's. */
  readonly row_label?: string;
  readonly is_money?: true;
  /** Returns the value in force; null where the keys are refused. */
  readonly inForce: (organization: WholeOrganization) => number | null;
}

const LIMITS: readonly Limit[] = [
  {
    name: 'minimum_tier',
    label: 'Minimum tier',
    row_label: 'Tier',
    inForce: ({ tier_in_force }) => tier_in_force,
  },
  {
    name: 'requests_per_minute',
    label: 'Requests per minute',
    inForce: ({ limits }) => limits?.requests_per_minute ?? null,
  },
  {
    name: 'tokens_per_minute',
    label: 'Tokens per minute',
    inForce: ({ limits }) => limits?.tokens_per_minute ?? null,
  },
  {
    name: 'questions_per_request',
    label: 'Questions per request',
    inForce: ({ limits }) => limits?.questions_per_request ?? null,
  },
  {
    name: 'top_up_max_micros',
    label: 'Largest top-up',
    is_money: true,
    inForce: ({ top_up }) => top_up.most_micros,
  },
];

/** The tier's minimum and the limits that the operator sets for one organization. */
export function Limits({ organization, onChange }: OrganizationProps) {
  const [is_open, setOpen] = useState(false);
  return (
    <Section
      title="Limits"
      description="What the tier gives, unless another value is set for this organization."
      actions={<Button onClick={() => setOpen(true)}>Change limits…</Button>}
    >
      <Table
        caption="Limits"
        rows={LIMITS}
        keyOf={({ name }) => name}
        columns={[
          { title: 'Limit', is_name: true, cell: ({ label, row_label }) => row_label ?? label },
          {
            title: 'In force',
            is_at_end: true,
            cell: (limit) => {
              const value = limit.inForce(organization);
              return value === null ? <span class="muted">No access on Tier 0</span> : shown(limit, value);
            },
          },
          {
            title: 'Set for it',
            is_at_end: true,
            cell: (limit) => {
              const value = organization.dedicated[limit.name];
              return value === null ? (
                <span class="muted">{limit.name === 'minimum_tier' ? 'By its payments' : 'As its tier'}</span>
              ) : (
                <Badge tone="info">
                  {limit.name === 'minimum_tier' ? `At least ${value}` : shown(limit, value)}
                </Badge>
              );
            },
          },
        ]}
      />
      <Dialog title="Change limits" is_open={is_open} onClose={() => setOpen(false)}>
        <LimitsForm
          organization={organization}
          onClose={() => setOpen(false)}
          onChanged={async () => {
            await onChange();
            showToast(
              <>
                The limits of <bdi>{organization.name}</bdi> are changed.
              </>,
            );
          }}
        />
      </Dialog>
    </Section>
  );
}

function LimitsForm({
  organization: { id, dedicated },
  onClose,
  onChanged,
}: {
  readonly organization: WholeOrganization;
  readonly onClose: () => void;
  readonly onChanged: () => Promise<void>;
}) {
  const [texts, setTexts] = useState<Readonly<Record<Name, string>>>(() => ({
    minimum_tier: written('minimum_tier', dedicated),
    requests_per_minute: written('requests_per_minute', dedicated),
    tokens_per_minute: written('tokens_per_minute', dedicated),
    questions_per_request: written('questions_per_request', dedicated),
    top_up_max_micros: written('top_up_max_micros', dedicated),
  }));
  return (
    <Form
      submit="Change limits"
      fields={LIMITS.map(({ name }) => name)}
      onCancel={onClose}
      onSubmit={async (values) => {
        const { limits } = api.operator.organizations({ organization_id: id });
        const changed: Partial<Record<Name, number | null>> = {};
        for (const { name } of LIMITS) {
          const value = given(name, values);
          if (value !== dedicated[name]) changed[name] = value;
        }
        if (Object.keys(changed).length > 0) await call(limits.patch(changed));
        await onChanged();
      }}
      onDone={onClose}
    >
      <p>A field that is empty follows payments and tier. Changes apply at once.</p>
      {LIMITS.map(({ name, label, is_money }) => (
        <TextField
          key={name}
          label={label}
          name={name}
          inputmode={is_money ? 'decimal' : 'numeric'}
          placeholder={name === 'minimum_tier' ? 'By its payments' : 'As its tier'}
          value={texts[name]}
          onInput={(text) => setTexts({ ...texts, [name]: text })}
          {...(is_money ? { prefix: '$' } : {})}
        />
      ))}
    </Form>
  );
}

function written(name: Name, dedicated: WholeOrganization['dedicated']): string {
  const value = dedicated[name];
  if (value === null) return '';
  return String(name === 'top_up_max_micros' ? value / MICROS_PER_DOLLAR : value);
}

/**
 * Returns the number of a field, or null where it is empty. Throws an error that the form shows beside it.
 */
function given(name: Name, values: FormValues): number | null {
  const text = values.text(name);
  if (text === '') return null;
  const value =
    name === 'top_up_max_micros' ? parseDollars(text) : /^\d{1,15}$/.test(text) ? Number(text) : null;
  if (value === null) {
    const needed = name === 'top_up_max_micros' ? 'Write dollars, such as 500.' : 'Write a whole number.';
    throw new ApiError('invalid_limit', needed, name, null, 422);
  }
  return value;
}

function shown({ is_money }: Limit, value: number): string {
  return is_money ? formatMoney(value) : formatNumber(value);
}
