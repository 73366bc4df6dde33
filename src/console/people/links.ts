/**
 * The links of mails: pages of the console that read a token from the fragment, which browsers do not send.
 */
export class Links {
  /** `public_url` is the address of the service, such as `https://tds.example.com`, with or without a path. */
  constructor(private readonly public_url: () => string) {}

  signIn(): string {
    return this.#page('sign-in');
  }

  verify(token: string): string {
    return this.#page('verify', token);
  }

  reset(token: string): string {
    return this.#page('reset', token);
  }

  invitation(token: string): string {
    return this.#page('invitation', token);
  }

  /** Returns the address of a page of an organization, such as `billing`. */
  organization(organization_id: string, page: string): string {
    return this.#page(`o/${organization_id}/${page}`);
  }

  account(): string {
    return this.#page('account');
  }

  #page(name: string, token?: string): string {
    const url = new URL(`/console/${name}`, this.public_url());
    if (token !== undefined) url.hash = new URLSearchParams({ token }).toString();
    return url.href;
  }
}
