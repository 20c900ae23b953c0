/** The playground's editor: CodeMirror in the site's colors, light and dark. It comes after the page. */
import { javascript } from "@codemirror/lang-javascript";
import { HighlightStyle, syntaxHighlighting, syntaxTree } from "@codemirror/language";
import { type Diagnostic, linter, setDiagnostics } from "@codemirror/lint";
import { EditorState, Prec } from "@codemirror/state";
import { EditorView, keymap } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { basicSetup } from "codemirror";

const colors = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword], color: "light-dark(#a0111f, #ff9492)" },
  { tag: [tags.string, tags.special(tags.string)], color: "light-dark(#032563, #addcff)" },
  { tag: [tags.number, tags.bool, tags.null], color: "light-dark(#023b95, #91cbff)" },
  { tag: tags.comment, color: "light-dark(#59636e, #b7bdc8)" },
  { tag: [tags.function(tags.variableName), tags.className], color: "light-dark(#622cbc, #dbb7ff)" },
]);
const look = EditorView.theme({
  "&": { fontSize: "13px", backgroundColor: "var(--vp-c-bg-soft)", color: "var(--vp-c-text-1)" },
  "&.cm-focused": { outline: "2px solid var(--vp-c-brand-1)" },
  ".cm-scroller": {
    fontFamily: "var(--vp-font-family-mono)",
    lineHeight: "1.5",
    maxHeight: "480px",
    minHeight: "200px",
  },
  ".cm-content": { caretColor: "var(--vp-c-text-1)" },
  ".cm-cursor": { borderLeftColor: "var(--vp-c-text-1)" },
  ".cm-gutters": { backgroundColor: "var(--vp-c-bg-soft)", color: "var(--vp-c-text-2)", border: "none" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "light-dark(#0000000d, #ffffff12)" },
  "&.cm-focused .cm-selectionBackground, .cm-selectionBackground": {
    background: "light-dark(#bcd6ff, #2f4f7f) !important",
  },
  ".cm-tooltip, .cm-panels": { backgroundColor: "var(--vp-c-bg-elv)", color: "var(--vp-c-text-1)" },
});

/** The first line that does not parse, counted from 1. */
function wrongLine(state: EditorState): number | undefined {
  let found: number | undefined;
  syntaxTree(state).iterate({
    enter({ type, from }) {
      if (type.isError) found ??= state.doc.lineAt(from).number;
    },
  });
  return found;
}

function diagnosticOf(state: EditorState, line: number, message: string): Diagnostic {
  const { from, to } = state.doc.line(Math.min(line, state.doc.lines));
  return { from, to, severity: "error", message };
}

export interface Editor {
  set(code: string): void;
  /** Underlines a line, counted from 1, until the code changes. */
  mark(line: number, message: string): void;
  wrongLine(): number | undefined;
  destroy(): void;
}

export function openEditor(parent: Element, code: string, changed: (code: string) => void, run: () => void): Editor {
  const runs = {
    key: "Mod-Enter",
    run() {
      run();
      return true;
    },
  };
  // The linter runs some time after a change, and takes away what it does not know.
  let marked: Diagnostic | undefined;
  const lint = linter(({ state }) => {
    const line = wrongLine(state);
    if (marked !== undefined) return [marked];
    return line === undefined ? [] : [diagnosticOf(state, line, "This does not parse.")];
  });
  const view = new EditorView({
    parent,
    state: EditorState.create({
      doc: code,
      extensions: [
        Prec.highest(keymap.of([runs])),
        ...[basicSetup, javascript(), syntaxHighlighting(colors), lint, look],
        EditorView.contentAttributes.of({ "aria-label": "Code", tabindex: "0" }),
        EditorView.updateListener.of(({ docChanged, state }) => {
          if (!docChanged) return;
          marked = undefined;
          changed(state.doc.toString());
        }),
      ],
    }),
  });
  return {
    set(text) {
      if (text !== view.state.doc.toString())
        view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } });
    },
    mark(line, message) {
      marked = diagnosticOf(view.state, line, message);
      view.dispatch(setDiagnostics(view.state, [marked]));
    },
    wrongLine: () => wrongLine(view.state),
    destroy: () => view.destroy(),
  };
}
