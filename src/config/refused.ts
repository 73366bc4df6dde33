/** Settings that nothing may start with; the message is one sentence about the first thing that is wrong. */
export class ConfigurationRefused extends Error {
  override readonly name = 'ConfigurationRefused';
}
