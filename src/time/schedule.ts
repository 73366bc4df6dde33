/** Calls back after a delay, unless the returned function is called first. */
export type Schedule = (callback: () => void, delay_ms: number) => () => void;

/** Schedules by timers that do not keep the process alive. */
export const scheduleByTimer: Schedule = (callback, delay_ms) => {
  const timer = setTimeout(callback, delay_ms);
  timer.unref();
  return () => clearTimeout(timer);
};
