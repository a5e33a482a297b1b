// Before the first paint: the colours that were chosen last. Not a module, so that nothing is painted before it.
try {
  const theme = localStorage.getItem("theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // storage is switched off
}
