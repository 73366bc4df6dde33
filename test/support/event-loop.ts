/**
 * The longest time for which `work` blocks the event loop, in milliseconds of this thread's CPU, which other threads
 * and processes do not lengthen.
 */
export async function longestBlock_ms(work: () => Promise<unknown>): Promise<number> {
  let longest_us = 0;
  let is_done = false;
  let turn_us = cpu_us();
  const turn = () => {
    const now_us = cpu_us();
    longest_us = Math.max(longest_us, now_us - turn_us);
    turn_us = now_us;
  };
  const watched = (async () => {
    while (!is_done) {
      await new Promise(setImmediate);
      turn();
    }
  })();
  try {
    await work();
  } finally {
    is_done = true;
  }
  await watched;
  return longest_us / 1_000;
}

function cpu_us(): number {
  const { user, system } = process.threadCpuUsage();
  return user + system;
}

/** Lets the event loop turn that often. */
export async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) await new Promise((resolve) => setTimeout(resolve));
}
