/** What little of XML the answers of S3 need. */

/** What stands between `<tag>` and `</tag>`, each time. */
export function tagsIn(xml: Uint8Array | string, tag: string): string[] {
  const text = typeof xml === "string" ? xml : new TextDecoder().decode(xml);
  return [...text.matchAll(new RegExp(`<${tag}>([\\s\\S]*?)</${tag}>`, "g"))].map(([, inner]) => unescaped(inner!));
}

const ENTITIES: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };

function unescaped(text: string): string {
  if (text.includes("<")) return text;
  return text.replace(/&(?:#x([0-9a-f]+)|#(\d+)|(\w+));/gi, (entity, hexadecimal, decimal, name) => {
    if (name !== undefined) return ENTITIES[name] ?? entity;
    return String.fromCodePoint(hexadecimal ? Number.parseInt(hexadecimal, 16) : Number(decimal));
  });
}
