/** The refusal to start with invalid settings; the message is one sentence about the first error. */
export class ConfigurationRefused extends Error {
  override readonly name = 'ConfigurationRefused';
}
