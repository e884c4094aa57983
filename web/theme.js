// Light or dark: as a link, an earlier choice or the system asks. Runs before
// the first paint, so that nothing flashes.
{
  const system = matchMedia("(prefers-color-scheme: dark)");
  const known = (theme) => (theme === "light" || theme === "dark" ? theme : "");
  let chosen = known(new URLSearchParams(location.search).get("theme"));
  try {
    chosen ||= known(localStorage.getItem("theme"));
  } catch {
    // a browser that keeps nothing
  }

  const apply = () => {
    document.documentElement.dataset.theme =
      chosen || (system.matches ? "dark" : "light");
    dispatchEvent(new Event("theme"));
  };
  system.addEventListener("change", apply);
  apply();

  globalThis.theme = {
    choose(theme) {
      chosen = known(theme);
      try {
        localStorage.setItem("theme", chosen);
      } catch {
        // then it lasts as long as the page
      }
      apply();
    },
  };
}
