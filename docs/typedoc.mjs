/** What TypeDoc cannot know: modules named as users import them, opened by their README, and split into topics. */
import { existsSync, readFileSync } from "node:fs";
import { dirname, sep } from "node:path";
import { Comment, CommentTag, Converter, DeclarationReflection, ReflectionKind } from "typedoc";
import { MarkdownPageEvent } from "typedoc-plugin-markdown";
import { withPages } from "../tools/workspace/readme-pages.mjs";
import { INTERNAL, TENSOR_GROUPS, TOPICS } from "./topics.mjs";

/** @param {import("typedoc").Application} app */
export function load(app) {
  app.converter.on(Converter.EVENT_RESOLVE_BEGIN, ({ project }) => {
    for (const child of project.getReflectionsByKind(ReflectionKind.All)) {
      if (INTERNAL.has(child.name) || child.name.startsWith("[")) project.removeReflection(child);
    }
    for (const module of project.children ?? []) {
      const file = sourceOf(project, module);
      module.name = `@opt/${module.name.replace("optimizers/", "").replace(/\/src(?=\/|$)/, "")}`;
      if (file)
        module.readme = file.endsWith("/src/index.ts") ? readmeOf(dirname(dirname(file))) : commentOf(module, file);
    }
    for (const module of [...(project.children ?? [])]) {
      const topics = TOPICS[module.name];
      if (topics) split(project, module, topics);
    }
    for (const each of project.getReflectionsByKind(ReflectionKind.Class)) {
      if (!(each instanceof DeclarationReflection)) continue;
      if (each.name === "Tensor") group(each);
      else removeInherited(project, each);
    }
  });
  app.renderer.on(MarkdownPageEvent.END, (page) => {
    page.contents = page.contents
      .replace(/^#+ (?:Overrides|Inherited from)\n\n.*\n+/gm, "")
      // VitePress numbers anchors of one name in their order on the page, TypeDoc does not: the first is meant.
      .replace(/(\]\([^)#]*#[a-z0-9]+)-\d+\)/g, "$1)");
    if (page.model.isProject()) page.contents = `# API\n\n${WELCOME}\n\n${packagesOf(page.model)}\n`;
    const [, name, topic] = /^(@opt\/\w+) (.*)$/.exec(page.model.name) ?? [];
    if (topic) page.contents = page.contents.replace(/^# .*/m, `# ${topic}\n\nFrom [${name}](/api/${bare(name)}.md).`);
    const topics = TOPICS[page.model.name];
    if (topics) page.contents += contentsOf(page.model.project, page.model.name);
  });
}

const WELCOME = "Every package, with its README and all that it exports. Start with `@opt/core` and `@opt/nn`.";

const NOT_YET =
  "The packages are not on npm yet: [install them from a clone](/how-to/install.md). After the first release:";

/** @param {string} name */
const bare = (name) => name.replace("@opt/", "");

/** Every package and entry with the first sentence of its page. @param {import("typedoc").ProjectReflection} project */
function packagesOf(project) {
  const modules = (project.children ?? []).filter(({ name }) => !name.includes(" "));
  const lines = modules.map(({ name, readme = [] }) => {
    const [, about = ""] =
      /^# .*\n\n(?:`@opt\S*`: )?(.*?)(?:[.:](?=\s+[A-Z`]|$)|$)/m.exec(readme.map(({ text }) => text).join("")) ?? [];
    return `- [\`${name}\`](/api/${pathOf(name)}.md): ${about}`;
  });
  return lines.join("\n");
}

/** What each topic of a package has, with links. @param {import("typedoc").ProjectReflection} project @param {string} name */
function contentsOf(project, name) {
  const topics = (project.children ?? []).filter((module) => module.name.startsWith(`${name} `));
  const lines = topics.map((module) => {
    const names = (module.children ?? []).filter(({ kind }) => kind & VALUES).map((child) => `\`${child.name}\``);
    return `- [${module.name.replace(/\S+ /, "")}](/api/${pathOf(module.name)}.md): ${names.join(", ")}`;
  });
  return `\n\n## What it exports\n\n${lines.join("\n")}\n`;
}

const VALUES = ReflectionKind.Class | ReflectionKind.Function | ReflectionKind.Variable;

/** Where the router puts a module. @param {string} name */
const pathOf = (name) => bare(name).replaceAll(" ", "-");

/** A class page shows its own members: those of its base class are one link away. */
function removeInherited(project, each) {
  for (const member of [...(each.children ?? [])]) {
    const owner = project.getSymbolIdFromReflection(member)?.qualifiedName.split(".")[0];
    if (owner && owner !== each.name && member.kind !== ReflectionKind.Constructor) project.removeReflection(member);
  }
}

/** @param {import("typedoc").ProjectReflection} project @param {import("typedoc").Reflection} reflection */
function sourceOf(project, reflection) {
  return project.getSymbolIdFromReflection(reflection)?.fileName?.split(sep).join("/");
}

/** Every export goes to the first topic that fits its file. A topic is a page. */
function split(project, module, topics) {
  const pages = new Map(topics.map(([title]) => [title, []]));
  for (const child of module.children ?? []) {
    const file = sourceOf(project, child)?.replace(/.*\/src\//, "") ?? "";
    const topic = topics.find(([, files]) => files.test(file));
    if (topic === undefined) throw new Error(`[docs] ${child.name} of ${file} has no topic in topics.mjs`);
    pages.get(topic[0]).push(child);
  }
  for (const [title, children] of pages) {
    if (children.length === 0) continue;
    const page = new DeclarationReflection(`${module.name} ${title}`, ReflectionKind.Module, project);
    project.registerReflection(page, undefined, undefined);
    project.addChild(page);
    for (const child of children) {
      module.removeChild(child);
      child.parent = page;
      page.addChild(child);
    }
  }
}

/** @param {DeclarationReflection} tensor */
function group(tensor) {
  for (const member of tensor.children ?? []) {
    const [title] = TENSOR_GROUPS.find(([, names]) => names.includes(member.name)) ?? [];
    if (title === undefined) continue;
    member.comment ??= new Comment();
    member.comment.blockTags.push(new CommentTag("@group", [{ kind: "text", text: title }]));
  }
}

/** A README without its table of exports, which the page has anyway. @param {string} folder */
function readmeOf(folder) {
  const file = `${folder}/README.md`;
  if (!existsSync(file)) return undefined;
  const text = readFileSync(file, "utf8").replace(/^## What it exports\n[\s\S]*?(?=^## |$(?![\s\S]))/m, "");
  // Files that are beside the README are no pages.
  const plain = text.replace(/\[([^\]]+)\]\((?!https?:|#)[^)]+\)/g, "$1");
  const noted = plain.replace(/^```sh\nnpm i /m, `${NOT_YET}\n\n$&`);
  return [{ kind: "text", text: withPages(noted, ({ title, page, anchor }) => `[${title}](/${page}.md${anchor})`) }];
}

/** The first comment of an entry that is no package. @param {DeclarationReflection} module @param {string} file */
function commentOf(module, file) {
  const [, block, line] = /^\/\*\*([\s\S]*?)\*\/|^\/\/ (.*)/m.exec(readFileSync(file, "utf8")) ?? [];
  const text = block?.replace(/^\s*\* ?/gm, "") ?? line ?? "";
  return [{ kind: "text", text: `# ${module.name}\n\n${text.trim()}` }];
}
