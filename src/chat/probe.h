// Renders a chat template with probe messages: the assistant turns that chat/detect.h compares.
// All renders of a prober share one budget of work, so that a hostile template cannot spend it many
// times over. One thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chat/chat_template.h"
#include "jinja/work_budget.h"

namespace cairn::chat {

// Marks that no template writes by itself.
constexpr std::string_view kProbeContent = "PROBECONTENT";
constexpr std::string_view kProbeReasoning = "PROBEREASONING";
constexpr std::string_view kProbeNames[2] = {"probe_alpha", "probe_omega"};
constexpr std::string_view kProbeIds[2] = {"prb000001", "prb000002"};
constexpr std::string_view kProbeKeys[3] = {"keyfirst", "keysecond", "keyother"};
constexpr std::string_view kProbeValues[3] = {"valuefirst", "24680", "valueother"};

struct Probe {
  bool has_content = true;
  bool has_reasoning = false;
  int call_count = 0;
  bool is_text_arguments = false;  // The arguments are a string that holds JSON.
  bool is_null_content = false;    // Without content: null instead of "".
  bool has_tools = false;
  std::string_view ids[2] = {kProbeIds[0], kProbeIds[1]};
  std::string_view switch_name = {};  // A variable that is set…
  bool switch_value = false;          // … to this.
};

class Prober {
 public:
  explicit Prober(const chat::ChatTemplate& chat_template) : template_(chat_template) {}

  // Whether the budget is spent: then the template refuses whatever is asked.
  bool is_spent() const { return budget_.is_spent(); }
  int64_t used_steps() const { return budget_.used_steps(); }

  // All text after the user's message; nothing if the template refuses.
  std::optional<std::string> turn(const Probe& probe);
  // Likewise what it writes to have an answer begun.
  std::optional<std::string> prompt(const Probe& probe);

 private:
  std::optional<std::string> render(const std::string& messages, const Probe& probe,
                                    bool adds_prompt);

  const chat::ChatTemplate& template_;
  jinja::WorkBudget budget_;
};

}  // namespace cairn::chat
