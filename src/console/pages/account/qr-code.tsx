import { useEffect, useState } from 'preact/hooks';

/** A text as a QR code, which a camera reads in dark colours on white alone. Its maker is loaded only with it. */
export function QrCode({ text, label }: { readonly text: string; readonly label: string }) {
  const [code, setCode] = useState<{
    readonly size: number;
    readonly data: readonly (readonly boolean[])[];
  }>();
  useEffect(() => {
    // Without it there is still the text to type.
    import('uqr').then(
      ({ encode }) => setCode(encode(text)),
      () => undefined,
    );
  }, [text]);
  if (code === undefined) return null;
  const dark = code.data.flatMap((row, y) => row.map((is_dark, x) => (is_dark ? `M${x} ${y}h1v1h-1z` : '')));
  return (
    <svg class="qr-code" role="img" aria-label={label} viewBox={`0 0 ${code.size} ${code.size}`}>
      <path d={dark.join('')} />
    </svg>
  );
}
