/** The values of a deployment file, by their names in it; the items of a list are separated by spaces. */
export type DeploymentValues = Readonly<Record<string, string | readonly string[]>>;

/** Characters without a meaning in systemd's and Caddy's syntax; a space would end a value there. */
const PLAIN = /^[\w./@:+?=&[\]-]*$/;

/** The error of a value that cannot be written into a deployment file. */
export class UnwritableValue extends Error {
  override readonly name = 'UnwritableValue';
}

/**
 * Returns the text with each `{{name}}` replaced by its value. Throws `UnwritableValue` for a value with a
 * character that has a meaning in the file.
 */
export function fillTemplate(template: string, values: DeploymentValues): string {
  return template.replaceAll(/\{\{(\w+)\}\}/g, (_, name: string) => {
    const given = values[name];
    if (given === undefined) throw new Error(`The template asks for ${name}.`);
    const words = [given].flat();
    const wrong = words.find((word) => !PLAIN.test(word));
    if (wrong !== undefined) {
      throw new UnwritableValue(
        `"${wrong}" cannot be written into a file of settings: choose one of letters, digits and signs such as / . - _, without spaces.`,
      );
    }
    return words.join(' ');
  });
}
