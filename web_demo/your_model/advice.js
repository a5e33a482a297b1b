// What a person can try when a model did not open or run.

const RULES = [
  [/external data|outside of the file/i, "Save it with its weights inside: onnx.save(model, path, save_as_external_data=False)."],
  [/memory|allocation|too large|elements: choose/i, "Choose smaller sizes, or close other tabs: a page has at most 4 GB."],
  [/HTTP \d|could not be loaded|Failed to fetch|a file of the page is missing/i, "Check that the server still runs, then load the page again."],
];

const BY_KIND = {
  UnsupportedOp:
    "Export it with another opset, or without the part that is named above; docs/ops.md lists what is supported. An issue with the message helps us to add it.",
  ModelError:
    "Check that the file is whole and of a kind that is read here: .onnx, .rnn, .nam, or a .json of RTNeural or AIDA-X. For an .onnx, onnx.checker.check_model says more.",
  PlanError: "Write the plan again with webrnn export, of the version that this page has.",
  ShapeError: "Try other sizes: press Find sizes, or take those that the model was exported with.",
  LimitError: "A run may take 10 s here. Choose smaller sizes or fewer steps.",
  StreamError: "Run single steps, or name its states as h_in=h_out.",
  OptionError: "Choose other settings and run it again.",
  Unexpected: "This is a mistake of webrnn's. Please report it with the details below; small weights or other sizes may avoid it.",
};

/** One sentence or two for an error, by its message first and by its kind (`fallback` if that says nothing). */
export function adviceFor(error, fallback = "") {
  const rule = RULES.find(([pattern]) => pattern.test(error.message ?? ""));
  return rule?.[1] ?? BY_KIND[error.kind ?? error.name] ?? fallback;
}

/** A title for an error, by what kind Python or the VM says it is. */
export function titleFor({ kind }, name) {
  if (kind === "UnsupportedOp") return `${name} uses something that webrnn does not support:`;
  if (kind === "PlanError") return `${name} is not a plan that can be run:`;
  if (kind === "ModelError") return `${name} is not a model that can be read:`;
  return `${name} could not be opened:`;
}
