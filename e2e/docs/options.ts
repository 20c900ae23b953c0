/** The options of all public functions: read from the sources by TypeScript. */
import { fileURLToPath } from "node:url";
import ts from "typescript";
import { INTERNAL } from "../../docs/topics.mjs";
import type { Entry } from "./exports";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

/** A public function, constructor or method that has options. */
interface Callee {
  /** As `@opt/nn: new Linear` or `@opt/core: Tensor.sum`. */
  readonly name: string;
  /** By the place of a parameter: the options in it, or the parameter's own name. */
  readonly parameters: ReadonlyMap<number, ReadonlySet<string>>;
}

/** By what declares it: a class stands for its constructor. */
export type Callees = ReadonlyMap<ts.Declaration, Callee>;

/** These entries and tests, with the types of the packages that tests are written by: others are large, and say nothing of options. */
export function programOf(entries: readonly Entry[], isTest: (file: string) => boolean): ts.Program {
  const { config } = ts.readConfigFile(`${ROOT}tools/tsconfig.json`, ts.sys.readFile);
  const { options, fileNames } = ts.parseJsonConfigFileContent(config, ts.sys, `${ROOT}tools`);
  const host = ts.createCompilerHost(options);
  const cache = ts.createModuleResolutionCache(ROOT, (name) => name, options);
  host.resolveModuleNameLiterals = (literals, file) =>
    literals.map(({ text }) =>
      /^(\.|@opt\/|@?vitest|fast-check)/.test(text)
        ? ts.resolveModuleName(text, file, options, host, cache)
        : { resolvedModule: undefined },
    );
  return ts.createProgram([...entries.map(({ file }) => file), ...fileNames.filter(isTest)], options, host);
}

export function readCallees(program: ts.Program, entries: readonly Entry[]): Callees {
  const checker = program.getTypeChecker();
  const callees = new Map<ts.Declaration, Callee>();

  const add = (name: string, symbol: ts.Symbol, signatures: readonly ts.Signature[]): void => {
    const declaration = implementationOf(checker, symbol)!;
    const parameters = new Map<number, Set<string>>();
    for (const signature of signatures)
      signature.parameters.forEach((parameter, place) => {
        for (const option of optionsOf(checker, parameter))
          parameters.set(place, (parameters.get(place) ?? new Set()).add(option));
      });
    if (parameters.size > 0 && !callees.has(declaration)) callees.set(declaration, { name, parameters });
  };
  const addMembers = (name: string, members: readonly ts.Symbol[]): void => {
    for (const member of members) {
      const [declaration] = member.declarations ?? [];
      if (declaration === undefined || !isOurs(declaration) || isHidden(declaration)) continue;
      const owner = ownerOf(declaration) ?? name;
      add(`${owner}.${member.name}`, member, checker.getTypeOfSymbol(member).getCallSignatures());
    }
  };
  const addExport = (name: string, symbol: ts.Symbol): void => {
    const [declaration] = symbol.declarations ?? [];
    if (declaration === undefined || !isOurs(declaration)) return;
    const short = name.replace(/.*: /, "");
    if (symbol.flags & ts.SymbolFlags.Class) {
      const type = checker.getTypeOfSymbol(symbol);
      const isAbstract = ts.getCombinedModifierFlags(declaration) & ts.ModifierFlags.Abstract;
      const ownConstructor = (declaration as ts.ClassDeclaration).members?.find(ts.isConstructorDeclaration);
      const isInternal = ownConstructor !== undefined && isHidden(ownConstructor);
      if (!isAbstract && !isInternal) add(name.replace(short, `new ${short}`), symbol, type.getConstructSignatures());
      addMembers(name, type.getProperties());
    }
    if (symbol.flags & (ts.SymbolFlags.Class | ts.SymbolFlags.Interface))
      addMembers(name, checker.getDeclaredTypeOfSymbol(symbol).getProperties());
    else if (symbol.flags & ts.SymbolFlags.Value)
      add(name, symbol, checker.getTypeOfSymbol(symbol).getCallSignatures());
  };
  for (const { name, file } of entries) {
    const module = checker.getSymbolAtLocation(program.getSourceFile(file)!)!;
    for (const exported of checker.getExportsOfModule(module))
      if (!INTERNAL.has(exported.name)) addExport(`${name}: ${exported.name}`, behind(checker, exported));
  }
  return callees;
}

export function behind(checker: ts.TypeChecker, symbol: ts.Symbol): ts.Symbol {
  return symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
}

/** What declares a function, also where a variable has the type of another. */
export function implementationOf(checker: ts.TypeChecker, symbol: ts.Symbol): ts.Declaration | undefined {
  const [declaration] = symbol.declarations ?? [];
  if (declaration === undefined || !ts.isVariableDeclaration(declaration)) return declaration;
  const [own] = checker.getTypeOfSymbol(symbol).symbol?.declarations ?? [];
  return own !== undefined && ts.isFunctionDeclaration(own) ? own : declaration;
}

/** The optional members of an object of options, or else the name of an optional parameter. */
function optionsOf(checker: ts.TypeChecker, parameter: ts.Symbol): string[] {
  const declaration = parameter.valueDeclaration;
  if (declaration === undefined || !ts.isParameter(declaration)) return [];
  // Its name is `__0`, where that of a parameter that is not used begins with one `_`.
  const isTakenApart = ts.isObjectBindingPattern(declaration.name);
  if (!isTakenApart && parameter.name.startsWith("_")) return [];
  const isOptional = declaration.questionToken !== undefined || declaration.initializer !== undefined;
  if (!isOptional && !isTakenApart && !/^(options|group)$/.test(parameter.name)) return [];
  const type = checker.getTypeOfSymbol(parameter);
  const members = (type.isUnion() ? type.types : [type]).filter(isOptions).flatMap((part) =>
    checker
      .getPropertiesOfType(part)
      .filter(({ flags, declarations }) => flags & ts.SymbolFlags.Optional && isOurs(declarations?.[0]))
      .map(({ name }) => name),
  );
  if (members.length > 0) return members;
  return isOptional ? [parameter.name] : [];
}

function isOptions(type: ts.Type): boolean {
  const { symbol } = type;
  return (
    (type.flags & (ts.TypeFlags.Object | ts.TypeFlags.Intersection)) !== 0 &&
    !(symbol?.flags & ts.SymbolFlags.Class) &&
    type.getCallSignatures().length + type.getConstructSignatures().length === 0
  );
}

const isOurs = (declaration: ts.Declaration | undefined): boolean =>
  declaration?.getSourceFile().fileName.startsWith(`${ROOT}packages/`) ?? false;

function isHidden(declaration: ts.Declaration): boolean {
  const hidden = ts.ModifierFlags.Private | ts.ModifierFlags.Protected;
  const { name } = declaration as ts.NamedDeclaration;
  const isPrivate = ts.getCombinedModifierFlags(declaration) & hidden || (name && ts.isPrivateIdentifier(name));
  return Boolean(isPrivate) || ts.getJSDocTags(declaration).some(({ tagName }) => tagName.text === "internal");
}

/** The class or interface that declares a member. */
function ownerOf({ parent }: ts.Declaration): string | undefined {
  return (ts.isClassLike(parent) || ts.isInterfaceDeclaration(parent)) && parent.name ? parent.name.text : undefined;
}
