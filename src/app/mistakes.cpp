#include "app/mistakes.hpp"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <optional>

#include "core/error.hpp"
#include "core/printable.hpp"
#include "core/units.hpp"

namespace rowmill {

namespace {

/// Letters to put in, take out or change (Levenshtein's distance).
std::size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, changed}));
    }
  }
  return row[b.size()];
}

std::string nearest(const std::string& word, const std::vector<std::string>& known) {
  std::string best;
  std::size_t least = std::min<std::size_t>(3, word.size() / 3 + 2);
  for (const std::string& name : known) {
    const bool begun = word.size() >= 3 && name.starts_with(word);
    const std::size_t far = begun ? 1 : distance(word.substr(0, 64), name);
    if (far < least && far < name.size()) {
      least = far;
      best = name;
    }
  }
  return best;
}

/// "--memory=2GB" and "-memory" → "memory".
std::string bare(const std::string& word) {
  const std::size_t at = std::min(word.find_first_not_of('-'), word.size());
  return word.substr(at, word.find('=') - at);
}

bool is_dashed(const std::string& word) {
  return word.size() > 1 && word[0] == '-' && word != "--";
}

bool holds(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string unknown_option(const std::string& word, const std::string& command, const OptionNames& all) {
  const std::string name = bare(word), said = "--" + name;
  for (const auto& [other, names] : all) {
    if (other != command && holds(names, name) && !holds(all.at(command), name))
      return command + " has no option " + said + ", it is one of " + other;
  }
  std::vector<std::string> dashed;
  for (const std::string& known : all.at(command)) dashed.push_back("--" + known);
  const std::string hint = did_you_mean(said, dashed);
  return "there is no option " + word.substr(0, word.find('=')) + hint;
}

/// Inputs may be several, what generate writes may not.
std::string several(const CommandLine& line, const std::vector<std::string>& more) {
  std::string names = line.generate.path;
  for (std::size_t i = 0; i < more.size() && i < 3; ++i) names += ", " + more[i];
  if (more.size() > 3) names += " and " + std::to_string(more.size() - 3) + " more";
  return "several outputs are given (" + names + "), and a run writes one";
}

/// Words that CLI11 could make nothing of, if there are any.
std::optional<std::string> explain_rest(const CLI::App& app, const CommandLine& line, const OptionNames& all) {
  const std::vector<std::string> rest = app.remaining();
  const auto option = std::find_if(rest.begin(), rest.end(), is_dashed);
  if (option != rest.end()) return unknown_option(*option, line.command, all);
  if (!rest.empty()) return several(line, rest);
  return std::nullopt;
}

/// The option that a message is about, by its name in it.
const CLI::Option* option_in(const std::string& message, const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = option->get_name();
    if (message.starts_with(name + ":") || message.starts_with(name + " ") || message.ends_with(name)) return option;
  }
  return nullptr;
}

bool stands_among(const CLI::Option& option, const std::vector<std::string>& arguments) {
  return std::any_of(arguments.begin(), arguments.end(), [&](const std::string& word) {
    for (const std::string& name : option.get_lnames()) {
      if (word == "--" + name || word.starts_with("--" + name + "=")) return true;
    }
    for (const std::string& name : option.get_snames()) {
      if (word.starts_with("-" + name)) return true;
    }
    return false;
  });
}

bool stands_in_config(const CLI::Option& option, const CLI::App& app) {
  const CLI::Option* config = app.get_config_ptr();
  if (config == nullptr || config->count() == 0) return false;
  try {
    for (const CLI::ConfigItem& item : app.get_config_formatter_base()->from_file(config->as<std::string>())) {
      if (option.check_lname(item.name)) return true;
    }
  } catch (const CLI::Error&) {  // it cannot be read, then nothing came from it
  }
  return false;
}

/// Where an option's value came from, if not from the command line: " (in c.toml)", " (from ROWMILL_MEMORY)".
std::string origin(const CLI::Option& option, const CLI::App& app, const std::vector<std::string>& arguments) {
  if (option.get_positional() || stands_among(option, arguments)) return "";
  if (stands_in_config(option, app)) return " (in " + app.get_config_ptr()->as<std::string>() + ")";
  const bool config = &option == app.get_config_ptr();
  const std::string variable = config ? "ROWMILL_CONFIG" : option.get_envname();
  return !variable.empty() && std::getenv(variable.c_str()) != nullptr ? " (from " + variable + ")" : "";
}

}  // namespace

std::string did_you_mean(const std::string& word, const std::vector<std::string>& known) {
  const std::string best = nearest(word, known);
  return best.empty() ? "" : "; did you mean " + best + "?";
}

std::string explain(const CLI::ParseError& error, const CLI::App& app, const CommandLine& line,
                    const std::vector<std::string>& arguments, const OptionNames& all) {
  const std::string help = "; rowmill " + line.command + " --help tells more";
  if (const auto rest = explain_rest(app, line, all)) return *rest + (rest->ends_with('?') ? help.substr(1) : help);
  const std::string message = error.what();
  const CLI::Option* const option = option_in(message, app);
  if (option == nullptr) return message + help;
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr && option->get_expected_max() > 0)
    return option->get_name() + " needs a value: " + option->get_description() + help;
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr)
    return option->get_name() + " is missing: " + option->get_description() + help;
  return message + origin(*option, app, arguments) + help;
}

void check_config(const CLI::App& app, const OptionNames& all) {
  const CLI::Option* config = app.get_config_ptr();
  if (config == nullptr || config->count() == 0) return;
  const auto path = config->as<std::string>();
  std::vector<std::string> known;
  for (const auto& [command, names] : all) known.insert(known.end(), names.begin(), names.end());
  for (const CLI::ConfigItem& item : app.get_config_formatter_base()->from_file(path)) {
    if (!item.parents.empty()) {
      throw Error(ExitCode::usage, "--config " + path + ": sections such as [" + item.parents.front() +
                                       "] are not used: leave it out and write the options one a line");
    }
    if (holds(known, item.name)) continue;
    throw Error(ExitCode::usage,
                "--config " + path + ": there is no option '" + item.name + "'" + did_you_mean(item.name, known));
  }
}

}  // namespace rowmill
