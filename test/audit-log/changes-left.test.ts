import { expect, test } from 'bun:test';
import { OPERATOR } from '../../src/access/actor.ts';
import { createKey, revokeKey } from '../../src/accounts/keys.ts';
import { addMember, removeMember } from '../../src/accounts/members.ts';
import { renameOrganization } from '../../src/accounts/organizations.ts';
import { signUp } from '../../src/accounts/users.ts';
import { CHANGES_PER_DAY } from '../../src/audit-log/changes-left.ts';
import { cancelTopUp, startTopUp } from '../../src/payments/credit.ts';
import { manualProvider } from '../../src/payments/manual.ts';
import type { Order } from '../../src/payments/provider.ts';
import { TestClock, temporaryDatabase } from '../accounts/support.ts';
import { contextOn } from '../support/context.ts';

const refused = expect.objectContaining({ code: 'too_many_changes' });

test('members of an organization change so much a day, and can always take away, leave and pay', async () => {
  const { db, remove } = temporaryDatabase();
  const clock = new TestClock();
  const context = contextOn(db, clock);
  const owner = await signUp(context, { email: 'ada@example.com', name: 'Ada' });
  const other = await signUp(context, { email: 'eve@example.com', name: 'Eve' });
  const actor = { kind: 'user', user_id: owner.user.id } as const;
  const { id: organization_id, default_project_id: project_id } = owner.organization;
  const eve = { organization_id, user_id: other.user.id };
  const { id: key_id } = await createKey(context, actor, { project_id, name: 'a key' });
  await addMember(context, actor, { ...eve, role: 'admin' });
  let number = 2;
  const rename = (by: typeof actor = actor) => {
    number += 1;
    return renameOrganization(context, by, { organization_id, name: `name ${number}` });
  };
  const renameAsEve = () => rename({ kind: 'user', user_id: other.user.id });
  while (number < CHANGES_PER_DAY) await renameAsEve();
  await expect(renameAsEve()).rejects.toEqual(refused);
  await expect(createKey(context, actor, { project_id, name: 'one more' })).rejects.toEqual(refused);
  // The member who made all these changes is removed with their keys, and the organization stays paid.
  await removeMember(context, actor, eve);
  await revokeKey(context, actor, key_id);
  const { payment_id } = await startTopUp(context, actor, manualProvider, {
    organization_id,
    amount_micros: 5_000_000,
  });
  await cancelTopUp(context, actor, { organization_id, payment_id });
  await renameOrganization(context, OPERATOR, { organization_id, name: 'by the operator' });
  await renameOrganization(
    context,
    { kind: 'user', user_id: other.user.id },
    {
      organization_id: other.organization.id,
      name: 'of another organization',
    },
  );
  await expect(rename()).rejects.toEqual(refused);
  // Nobody asks a provider for more checkouts than can be kept.
  const checkouts = { asked: 0, kept: 0 };
  const provider = {
    ...manualProvider,
    createCheckout: (order: Order) => {
      checkouts.asked += 1;
      return manualProvider.createCheckout(order);
    },
  };
  const startOne = () => startTopUp(context, actor, provider, { organization_id, amount_micros: 5_000_000 });
  let started = await startOne();
  await expect(
    (async () => {
      for (;;) {
        checkouts.kept += 1;
        await cancelTopUp(context, actor, { organization_id, payment_id: started.payment_id });
        started = await startOne();
      }
    })(),
  ).rejects.toEqual(refused);
  expect(checkouts.asked).toBe(checkouts.kept);
  clock.advance(86_400_000);
  await rename();
  remove();
}, 120_000);
