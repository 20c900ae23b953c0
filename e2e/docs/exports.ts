/** What every published package exports, with the first line of each doc comment: read from the sources by TypeScript. */
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";
import { INTERNAL } from "../../docs/topics.mjs";
import { publicPackages } from "../../tools/workspace/packages.mjs";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const HEADING = "## What it exports";

export interface Exported {
  readonly name: string;
  readonly kind: "value" | "type";
  /** The first sentence of its doc comment; empty without one. */
  readonly sentence: string;
}

export interface Entry {
  /** As users import it: `@opt/core/schedules`. */
  readonly name: string;
  readonly file: string;
}

export interface PublishedPackage {
  readonly name: string;
  readonly readme: string;
  readonly entries: readonly Entry[];
}

/** Every package that is published, and its entries. */
export function publishedPackages(): PublishedPackage[] {
  return publicPackages().map(({ name, folder, exports = {} }) => {
    const entries = Object.entries(exports as Record<string, string | Record<string, string>>).flatMap(
      ([entry, target]) =>
        typeof target === "string"
          ? []
          : [{ name: name + entry.slice(1), file: join(folder, target["@opt/source"] as string) }],
    );
    // Another name of an entry has no table of its own.
    const files = new Map(entries.map((entry) => [entry.file, entry.name]).reverse() as [string, string][]);
    return {
      name,
      readme: `${folder}/README.md`,
      entries: entries.filter((entry) => files.get(entry.file) === entry.name),
    };
  });
}

export interface Reading {
  /** What each entry exports, in the order of the alphabet: values, then types. */
  readonly exported: ReadonlyMap<string, readonly Exported[]>;
  /** Types of these packages that a public signature names and no entry exports, each with who names it. */
  readonly hidden: readonly string[];
}

export function readExports(entries: readonly Entry[]): Reading {
  const { config } = ts.readConfigFile(`${ROOT}tools/tsconfig.json`, ts.sys.readFile);
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, `${ROOT}tools`);
  // Only names of ours are looked for.
  const program = ts.createProgram(
    entries.map(({ file }) => file),
    { ...options, noLib: true, types: [] },
  );
  const checker = program.getTypeChecker();
  const behind = (symbol: ts.Symbol) =>
    symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
  const symbolsOf = ({ file }: Entry) =>
    checker.getExportsOfModule(checker.getSymbolAtLocation(program.getSourceFile(file)!)!);

  const describe = (exported: ts.Symbol): Exported => {
    const text = ts.displayPartsToString(behind(exported).getDocumentationComment(checker));
    const isValue = behind(exported).flags & ts.SymbolFlags.Value && !isTypeOnly(exported);
    return { name: exported.name, kind: isValue ? "value" : "type", sentence: firstSentence(text) };
  };
  const order = (a: Exported, b: Exported) =>
    a.kind === b.kind ? (a.name.toLowerCase() < b.name.toLowerCase() ? -1 : 1) : a.kind === "value" ? -1 : 1;
  const exported = new Map(entries.map((entry) => [entry.name, symbolsOf(entry).map(describe).sort(order)]));

  const known = new Set(entries.flatMap(symbolsOf).map(behind));
  const hidden = [...known].flatMap((symbol) =>
    (symbol.declarations ?? [])
      .flatMap(namesInSignature)
      .map((name) => ({ name, used: checker.getSymbolAtLocation(name) }))
      .filter(({ used }) => used !== undefined && isOurs(behind(used)) && !known.has(behind(used)))
      .map(({ name }) => `${name.getText()}, in ${symbol.name}`),
  );
  return { exported, hidden: [...new Set(hidden)] };
}

/** Declared at the top of a source of these packages: neither a type parameter nor a library's. */
function isOurs({ declarations: [declaration] = [] }: ts.Symbol): boolean {
  return (
    declaration !== undefined &&
    ts.isSourceFile(declaration.parent) &&
    declaration.getSourceFile().fileName.startsWith(`${ROOT}packages/`)
  );
}

/** The names of types in what users see of a declaration: no bodies, no private or internal members. */
function namesInSignature(declaration: ts.Node): ts.EntityName[] {
  const names: ts.EntityName[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isBlock(node) || ts.isPrivateIdentifier(node) || ts.isArrowFunction(node) || isUnseen(node)) return;
    if (ts.isTypeReferenceNode(node)) names.push(node.typeName);
    ts.forEachChild(node, visit);
  };
  visit(declaration);
  return names;
}

function isUnseen(node: ts.Node): boolean {
  const isPrivate =
    ts.canHaveModifiers(node) && ts.getModifiers(node)?.some(({ kind }) => kind === ts.SyntaxKind.PrivateKeyword);
  const isNamedPrivate = ts.isClassElement(node) && node.name !== undefined && ts.isPrivateIdentifier(node.name);
  const isInternal = ts.getJSDocTags(node).some(({ tagName }) => tagName.text === "internal");
  return isPrivate || isNamedPrivate || isInternal;
}

/** `export type { SomeClass }` gives the type alone. */
function isTypeOnly({ declarations: [declaration] = [] }: ts.Symbol): boolean {
  return declaration !== undefined && ts.isExportSpecifier(declaration) && ts.isTypeOnlyExportDeclaration(declaration);
}

function firstSentence(text: string): string {
  const paragraph = text.trim().split("\n\n")[0]!.replaceAll("\n", " ");
  return paragraph.replace(/\{@link (.*?)\}/g, "$1").replace(/(?<!\bal)\. (?=[A-Z`]).*/, ".");
}

/** Text in a table: a `<` outside of code would open a tag. */
const cell = (text: string) =>
  text.replaceAll("|", "\\|").replace(/`[^`]*`|</g, (part) => (part === "<" ? "\\<" : part));

/** An entry with more values than a README can say a line of. */
const LONG = 100;

/** The section of a README: a table per entry, or where that is long the names of its values. Types that say nothing of themselves, of options and results, share a row. */
export function exportSection(package_: PublishedPackage, exported: ReadonlyMap<string, readonly Exported[]>): string {
  const tables = package_.entries.flatMap(({ name }) => {
    const all = exported.get(name)!.filter((each) => !INTERNAL.has(each.name));
    const rows = all
      .filter(({ sentence }) => sentence !== "")
      .map((each) => `| \`${each.name}\` | ${cell(each.sentence)} |`);
    const silent = all.filter(({ sentence }) => sentence === "").map((each) => `\`${each.name}\``);
    if (silent.length > 0) rows.push(`| types of options, arguments and results | ${silent.join(", ")} |`);
    const values = all.filter(({ kind }) => kind === "value").map((each) => `\`${each.name}\``);
    if (values.length > LONG) {
      const all = `a line of each, and types | the API of the site: \`npm run docs\` in a clone`;
      rows.splice(0, rows.length, `| classes and functions | ${values.join(", ")} |`, `| ${all} |`);
    }
    const head = rows.length === 0 ? ["Nothing: its import makes the device known."] : ["| | |", "|---|---|", ...rows];
    return package_.entries.length === 1 ? head : [`### \`${name}\``, "", ...head, ""];
  });
  return `${HEADING}\n\n${tables.join("\n").trim()}\n`;
}

/** A README with its section in the place of the old one, or at its end. */
export function withSection(readme: string, section: string): string {
  const [before, rest] = readme.split(new RegExp(`^${HEADING}$`, "m"));
  const after = rest?.slice(rest.search(/^## /m) >>> 0) ?? "";
  return `${before!.trimEnd()}\n\n${section}${after === "" ? "" : `\n${after}`}`;
}
