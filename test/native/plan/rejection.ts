import { PlanRejected } from '../../../native/errors.ts';

/** Why a plan is rejected. Rejects when it is made, or fails for another reason. */
export async function rejection(planning: Promise<unknown>): Promise<PlanRejected> {
  try {
    await planning;
  } catch (error) {
    if (error instanceof PlanRejected) return error;
    throw error;
  }
  throw new Error('It was not rejected.');
}
