import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';

interface PageHeaderProps {
  readonly title: string;
  readonly description?: ComponentChildren;
  readonly actions?: ComponentChildren;
}

/** The head of every page: its one `h1`, which is the document's title too, and its actions. */
export function PageHeader({ title, description, actions }: PageHeaderProps) {
  useTitle(title);
  return (
    <header class="page-header">
      <div>
        <h1>{title}</h1>
        {description !== undefined && <p class="description">{description}</p>}
      </div>
      {actions !== undefined && <div class="page-actions">{actions}</div>}
    </header>
  );
}

/** Gives the document a title; undefined leaves it as it is. */
export function useTitle(title: string | undefined): void {
  useEffect(() => {
    if (title !== undefined) document.title = `${title} · Typed Decision Service`;
  }, [title]);
}

/** A part of a page with a heading and a frame. */
export function Section({
  title,
  description,
  actions,
  children,
}: PageHeaderProps & { readonly children: ComponentChildren }) {
  return (
    <section class="section">
      <header class="section-header">
        <div>
          <h2>{title}</h2>
          {description !== undefined && <p class="description">{description}</p>}
        </div>
        {actions !== undefined && <div class="page-actions">{actions}</div>}
      </header>
      {children}
    </section>
  );
}
